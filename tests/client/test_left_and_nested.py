"""What a block leaves behind: the outer heartbeat, the attempt, the handle's own task."""

import msgspec
import pytest

import relet
from relet.client import asks
from relet.core import border


def test_an_inner_block_leaves_the_outer_heartbeat(relet_db):
    relet_db.submit("q", id="t")
    lease = relet_db.claim("q", ttl=10)
    with lease:
        with lease.keep():
            lease.save(1)
        assert lease.belief in relet_db.keeper._kept
        lease.complete(1)
    assert not relet_db.keeper._kept


@pytest.mark.parametrize("away", [relet.Unavailable("busy"), relet.OutcomeUnknown("perhaps")])
def test_a_store_that_is_away_costs_no_attempt(relet_db, away):
    relet_db.submit("q", id="t", max_attempts=1)
    with pytest.raises(type(away)), relet_db.claim("q"):
        raise away
    task = relet_db.task("t")
    assert (task.state, task.attempt, task.failures) == ("ready", 1, 0)


def test_a_handler_that_meets_a_store_that_is_away_is_tried_again_after_a_pause(relet_db):
    app = relet.App()

    @app.task("q")
    def handler(run):
        raise relet.Unavailable("busy")

    relet_db.submit("q", id="t", max_attempts=1)
    assert app.run_until_idle(relet_db) == 1
    task = relet_db.task("t")
    assert (task.state, task.attempt, task.failures) == ("ready", 1, 0)
    assert task.due_at is not None


def test_a_handle_proves_the_task_that_it_names_and_no_other(relet_db):
    relet_db.submit("q", id="t")
    relet_db.submit("q", id="other")
    handle = relet_db.claim("q").belief.grant.handle
    swapped = msgspec.structs.replace(handle, task_id="other")
    with pytest.raises(relet.NotFound):
        relet_db.backend.call(asks.save(swapped, "from another task", "main"))
    assert relet_db.lease(border.handle_text(handle)).load() is None
