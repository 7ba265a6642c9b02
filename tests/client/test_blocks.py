"""How a `with` block over a lease ends: by a verb, an exception, an order to stop, a loss, or by nothing at all."""

import threading

import pytest

import relet
from relet.core.errors import LeaseLost, Permanent, Temporary, Unavailable
from relet.testing.stores import open_store
from tests.client.line import Line
from tests.waiting import eventually


@pytest.fixture
def lease(db):
    db.submit("q", 1, id="t", ttl=60)
    return db.claim("q", holder="A")


def lose(db, lease):
    """The store gives the task to somebody else, and the keeper hears of it."""
    db.cancel("t", "no need")
    db.clock.advance(20)
    assert lease.lost.wait(15)


def within(block, *steps):
    """Take the steps inside the block."""
    with block:
        for step in steps:
            step()


def raising(error):
    def step():
        raise error

    return step


def test_a_block_renews_its_lease_until_it_ends(db, lease):
    with lease as same:
        assert same is lease
        for _ in range(4):
            db.clock.advance(20)
            eventually(lambda: lease.expires_in == 60)
        lease.complete("done")
    assert db.result("t") == "done"


@pytest.mark.parametrize(
    ("end", "state"),
    [(lambda lease: lease.complete(1), "done"), (lambda lease: lease.fail("no", retry=False), "failed"),
     (lambda lease: lease.release(), "ready")],
    ids=["complete", "fail", "release"],
)  # fmt: skip
def test_a_block_whose_lease_its_own_holder_ended_ends_silently(db, lease, end, state):
    with lease:
        end(lease)
        db.clock.advance(600)
    assert db.task("t").state == state


def test_an_exception_after_the_end_comes_through_and_changes_nothing(db, lease):
    with pytest.raises(ValueError, match="afterwards"):
        within(lease, lease.complete, raising(ValueError("afterwards")))
    assert db.task("t").state == "done"


def test_an_exception_fails_the_attempt_and_goes_on(db, lease):
    with pytest.raises(ValueError, match="no such page"), lease:
        raise ValueError("no such page")
    task = db.task("t")
    assert (task.state, task.failures, task.error) == ("ready", 1, "ValueError: no such page")
    assert task.due_at is not None, "after the backoff"


def test_an_exception_without_words_is_told_by_its_name(db, lease):
    with pytest.raises(KeyError), lease:
        raise KeyError
    assert db.task("t").error == "KeyError"


VERDICTS = [
    (Permanent("bad input", code="E1"), "failed", "bad input", "E1", 0),
    (Permanent(), "failed", "Permanent", None, 0),
    (Temporary("later", delay="30s", code="E2"), "ready", "later", "E2", 30),
    (Temporary("soon", delay=0), "ready", "soon", None, 0),
    (Temporary("whenever"), "ready", "whenever", None, 1),
]


@pytest.mark.parametrize(("verdict", "state", "error", "code", "delay"), VERDICTS, ids=range(len(VERDICTS)))
def test_a_verdict_says_whether_and_when_to_try_again(db, lease, verdict, state, error, code, delay):
    with pytest.raises(type(verdict)), lease:
        raise verdict
    task = db.task("t")
    assert (task.state, task.error, task.code) == (state, error, code)
    if delay:
        assert delay <= (task.due_at.timestamp() * 1_000 - db.clock.wall_ms()) / 1_000 <= delay * 1.2
    else:
        assert task.due_at is None


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_order_to_stop_gives_the_task_back_at_no_cost(db, lease, stop):
    with pytest.raises(stop), lease:
        raise stop
    task = db.task("t")
    assert (task.state, task.failures, task.losses, task.attempt, task.due_at) == ("ready", 0, 0, 1, None)
    assert db.claim("q") is not None


def test_a_block_that_ends_nothing_releases_with_a_warning(db, lease):
    with pytest.warns(RuntimeWarning, match="the block of task t ended without complete, fail or release"), lease:
        pass
    assert (db.task("t").state, db.task("t").attempt) == ("ready", 1)


def test_a_loss_is_raised_at_the_end_of_the_block(db, lease):
    with pytest.raises(LeaseLost) as lost, lease:
        lose(db, lease)
    assert lost.value.reason == "cancelled"
    assert lost.value is lease.belief.cause


def test_a_loss_stands_in_for_an_exception_of_the_work(db, lease):
    with pytest.raises(LeaseLost) as lost:
        within(lease, lambda: lose(db, lease), raising(ValueError("what the loss led to")))
    assert isinstance(lost.value.__cause__, ValueError)
    assert db.task("t").failures == 0


def test_a_loss_that_the_work_met_itself_is_raised_as_it_was_met(db, lease):
    with pytest.raises(LeaseLost) as lost:
        within(lease, lambda: lose(db, lease), lambda: lease.save({"page": 1}))
    assert lost.value is not lease.belief.cause
    assert lost.value.reason == "cancelled"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_order_to_stop_is_not_swallowed_by_a_loss(db, lease, stop):
    with pytest.raises(stop):
        within(lease, lambda: lose(db, lease), raising(stop()))
    assert db.task("t").cancel_requested


def test_a_deadline_that_passed_unseen_is_a_loss_at_the_end(db, lease, monkeypatch):
    monkeypatch.setattr(db.keeper, "tend", lambda kept: None)
    with pytest.raises(LeaseLost) as lost, lease:
        db.clock.advance(57)
    assert lost.value.reason == "expired"


def test_a_lease_that_another_process_ended_ends_its_block_silently(db, lease):
    with lease:
        db.lease(lease.handle).complete("elsewhere")
        db.clock.advance(20)
        assert lease.lost.wait(15)
    assert db.result("t") == "elsewhere"


def test_a_store_that_does_not_take_the_failure_is_told_to_the_caller(db, lease):
    line = lease._client.backend = Line(db.backend)
    with pytest.raises(Unavailable) as told, line.cut(), lease:
        raise ValueError("what happened first")
    assert isinstance(told.value.__context__, ValueError)


def test_keeping_alone_ends_nothing(db, lease):
    with lease.keep() as same:
        assert same is lease
        db.clock.advance(20)
        eventually(lambda: lease.expires_in == 60)
    assert (db.task("t").live, lease.status) == (True, "held")
    lease.complete(1)


def test_keeping_alone_lets_exceptions_through_and_ends_nothing(db, lease):
    with pytest.raises(ValueError, match="as it was"), lease.keep():
        raise ValueError("as it was")
    assert db.task("t").live


def test_keeping_alone_raises_a_loss_at_its_end(db, lease):
    with pytest.raises(LeaseLost) as lost, lease.keep():
        lose(db, lease)
    assert lost.value.reason == "cancelled"


def test_keeping_alone_lets_an_order_to_stop_through_a_loss(db, lease):
    with pytest.raises(KeyboardInterrupt):
        within(lease.keep(), lambda: lose(db, lease), raising(KeyboardInterrupt()))


def test_after_the_block_nobody_renews_any_more(db, lease):
    with lease.keep():
        pass
    assert db.keeper._kept == {}
    db.clock.advance(60)
    assert not db.task("t").live


def test_a_client_that_is_closed_within_a_block_leaves_the_lease_to_its_ttl(clock, tmp_path):
    db, other = open_store(tmp_path, clock), open_store(tmp_path, clock)
    db.submit("q", 1, id="t", ttl=60)
    with pytest.raises(Unavailable, match="this client is closed"), db.claim("q"):
        db.close()
    assert other.task("t").live
    other.close()


def test_leases_of_one_client_are_kept_by_one_thread(db):
    db.submit_many("q", range(5))
    leases = db.claim_many("q", 5)
    before = threading.active_count()
    for lease in leases:
        lease.__enter__()
    assert threading.active_count() == before + 1
    for lease in leases:
        lease.complete()
        lease.__exit__(None, None, None)


def test_the_public_errors_are_those_that_blocks_understand():
    assert (relet.Permanent, relet.Temporary) == (Permanent, Temporary)
