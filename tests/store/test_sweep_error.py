"""An error in the middle of a sweep: what was closed is closed once, and the next sweep sees all the rest."""

import pytest

from relet.core import limits
from relet.core.errors import Unavailable
from relet.core.rules import lapse as rule

LEASED, FAULTY = 250, 37


def test_rd_12_an_error_at_one_of_many_lapses_leaves_the_rest_to_the_next_sweep(db, clock, monkeypatch):
    db.submit_many("q", range(LEASED))
    leases = db.claim_many("q", LEASED)
    clock.advance("60s")
    real, seen = rule.lapse, []

    async def fails_once(tx, lease, task, at, **how):
        seen.append(lease.token)
        await real(tx, lease, task, at, **how)
        if len(seen) == FAULTY:
            raise Unavailable("the database is restarting")

    monkeypatch.setattr(rule, "lapse", fails_once)
    with pytest.raises(Unavailable, match="restarting"):
        db.sweep()
    lost = [task for task in db.tasks(limit=LEASED) if task.losses]
    assert len(lost) == limits.LAPSES_PER_BATCH, "the batch of the error is undone as a whole"
    assert db.sweep() == LEASED - limits.LAPSES_PER_BATCH
    assert seen.count(leases[FAULTY - 1].token) == 2
    assert {(task.state, task.losses, task.attempt) for task in db.tasks(limit=LEASED)} == {("ready", 1, 2)}
    assert db.sweep() == 0
