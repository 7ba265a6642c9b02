"""A service begins over a file: whoever could not renew through it meanwhile has a whole ttl from then."""

import pytest

import relet
from relet.store.secrets import SECRETS_SERVED
from relet.testing import Clock
from relet.testing.stores import open_store
from tests.folders import quick_folder


@pytest.fixture
def db():
    with quick_folder() as folder, open_store(folder, Clock()) as db:
        yield db


def test_what_ran_out_while_nobody_could_renew_it_is_held_again(db):
    task = db.submit("q", ttl="10s")
    lease = db.claim("q")
    db.clock.advance("30s")
    assert not db.task(task.id).live
    assert db.backend.begin_to_serve() == 1
    assert db.task(task.id).live
    assert lease.renew() > 0
    assert [str(event.kind) for event in db.history(task.id)] == ["submitted", "claimed"]


def test_a_lapse_after_it_is_no_loss_and_one_that_was_written_down_stays(db):
    task, other = db.submit("q", ttl="10s"), db.submit("other", ttl="10s")
    db.claim("q")
    gone = db.claim("other")
    db.clock.advance("30s")
    db.sweep()
    assert db.task(other.id).losses == 1
    again = db.claim("q")
    db.clock.advance("5s")
    db.backend.begin_to_serve()
    db.clock.advance("11s")
    db.sweep()
    assert (db.task(task.id).losses, again.token) == (1, db.task(task.id).token)
    with pytest.raises(relet.LeaseLost):
        gone.renew()


def test_it_is_written_down_that_there_was_an_outage(db):
    start = db.watch(after=0)
    db.backend.begin_to_serve()
    event = next(start)
    assert (str(event.kind), event.task_id, event.detail) == ("outage", None, {"why": "service start"})


def test_a_service_remembers_the_secrets_of_no_more_leases_than_pass_by_soon(db):
    before = db.backend.store.identity.secret(1, "t")
    db.backend.begin_to_serve()
    secret = db.backend.store.identity.secret
    assert (secret(1, "t"), secret.cache_info().maxsize) == (before, SECRETS_SERVED)
