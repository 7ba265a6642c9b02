"""Liveness is not progress: a handler that moves nothing for `max_silence` is not kept alive by its heartbeat."""

import pytest

import relet
from tests.waiting import Gate, eventually

BEAT_S = 10


def beats(db, belief, n):
    """Let time pass, a beat at a time."""
    for _ in range(n):
        before = belief.trust.renewed_ms
        db.clock.advance(BEAT_S)
        eventually(lambda before=before: belief.trust.renewed_ms > before)


@pytest.fixture
def app():
    return relet.App()


def test_p12_a_hung_handler_loses_its_lease_which_counts_and_is_said(relet_db, app, caplog):
    started, gate = Gate(), Gate()

    @app.task("work", ttl="30s", max_silence="35s")
    def work(run):
        started.set()
        gate.pass_through()
        run.check()

    task = work.submit(relet_db)
    with app.worker(relet_db):
        started.pass_through()
        (belief,) = relet_db.keeper._kept
        beats(relet_db, belief, 3)
        relet_db.clock.advance(BEAT_S)
        assert belief.is_silent
        assert relet_db.task(task.id).live, "not renewed any more, and held to its end"
        relet_db.clock.advance("18.6s")
        eventually(lambda: belief.is_lost)
        eventually(lambda: relet_db.task(task.id).losses == 1)
        assert "max_silence" in relet_db.task(task.id).error, "the store is told, while the handler still hangs"
        assert "(max_silence)" in caplog.text, "and whoever reads the log"
        relet_db.cancel(task.id)
        gate.set()
    assert "nothing moved under it for 35000 ms (max_silence)" in str(belief.cause)
    lapsed = relet_db.history(task.id)[2]
    assert (lapsed.kind, lapsed.detail["why"], lapsed.detail["by"]) == ("lapsed", "expired", "max_silence")


@pytest.mark.parametrize("move", ["save", "progress", "step"])
def test_whatever_moves_ends_the_silence(relet_db, app, move):
    started, halfway, moved, gate = Gate(), Gate(), Gate(), Gate()
    moves = {
        "save": lambda run: run.save(1),
        "progress": lambda run: run.progress("half"),
        "step": lambda run: run.step("one", lambda: 1),
    }

    @app.task("work", ttl="30s", max_silence="35s")
    def work(run):
        started.set()
        halfway.pass_through()
        moves[move](run)
        moved.set()
        gate.pass_through()
        run.check()
        return "done"

    task = work.submit(relet_db)
    with app.worker(relet_db):
        started.pass_through()
        (belief,) = relet_db.keeper._kept
        beats(relet_db, belief, 3)
        halfway.set()
        moved.pass_through()
        beats(relet_db, belief, 3)
        gate.set()
        assert relet_db.result(task.id, wait=10) == "done"
    assert relet_db.task(task.id).attempt == 1


def test_a_heartbeat_alone_moves_nothing_and_neither_does_a_check(relet_db):
    lease = relet_db.claim(task_id=relet_db.submit("q", ttl="30s").id)
    from relet.client.silence import Silence

    lease.belief.silence = Silence(relet_db.clock, 35_000, lambda: None)
    relet_db.clock.advance("20s")
    lease.renew()
    relet_db.clock.advance("15s")
    lease.check()
    assert lease.belief.is_silent
    lease.progress("at last")
    assert not lease.belief.is_silent
