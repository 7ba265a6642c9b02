"""A worker removes what is past the retention of its queue, and nothing else."""

import relet
from relet.core.rules.prune import Prune
from relet.testing import store
from relet.worker.retention import LOOK_EVERY_S, Retention
from tests.waiting import eventually


def test_what_is_past_its_retention_leaves_in_batches_at_each_tick():
    with store() as db:
        db.queue("q", retention="1d")
        db.submit_many("q", range(150))
        for lease in db.claim_many("q", 150):
            lease.complete()
        db.submit("forever", id="kept")
        db.claim("forever").complete()
        retention = Retention(db, now=0)
        db.clock.advance("1d")
        retention.tick(LOOK_EVERY_S)
        assert 0 < len(db.tasks("q")) < 150
        while db.tasks("q"):
            retention.tick(LOOK_EVERY_S)
        assert [task.id for task in db.tasks()] == ["kept"]
        assert db.verify().ok


def test_it_looks_once_a_minute():
    with store() as db:
        db.queue("q", retention="1m")
        retention = Retention(db, now=0)
        retention.tick(LOOK_EVERY_S)
        db.submit_many("q", [1, 2])
        for lease in db.claim_many("q", 2):
            lease.complete()
        db.submit("q", id="newest")
        db.clock.advance("1m")
        retention.tick(2 * LOOK_EVERY_S - 1)
        assert len(db.tasks("q")) == 3
        retention.tick(2 * LOOK_EVERY_S)
        assert len(db.tasks("q")) == 1


def test_a_worker_ticks(db, app, monkeypatch):
    monkeypatch.setattr("relet.worker.retention.LOOK_EVERY_S", 0.0)
    ticks = []
    monkeypatch.setattr("relet.worker.retention.Retention.tick", lambda _, now: ticks.append(now))
    app.task("work")(lambda run: None)
    with app.worker(db):
        eventually(lambda: ticks)


def test_a_worker_whose_key_may_not_remove_anything_goes_on_without(db, monkeypatch):
    call, asked = db.backend.call, []

    def refused(ask, **how):
        if isinstance(ask, Prune):
            asked.append(ask)
            raise relet.Forbidden("the key has the role worker")
        return call(ask, **how)

    monkeypatch.setattr(db.backend, "call", refused)
    retention = Retention(db, 0.0)
    retention.tick(LOOK_EVERY_S)
    retention.tick(10 * LOOK_EVERY_S)
    assert len(asked) == 1
