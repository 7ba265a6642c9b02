"""The hot path prepares its statements once: counted by the driver, on both lanes that write."""

import pytest

from relet.store.sqlite import group as groups
from tests.store.inside import lane
from tests.store.sharing import all_at_once

ROUNDS = 20


def missed(db):
    """How often the lanes had to prepare a statement, by lane; a text too long to be kept counts as well."""
    counts = {}
    for name in ("write", "beat", "read"):
        stats = lane(db, name).connection().cache_stats()
        counts[name] = stats["misses"] + stats["no_cache"] + stats["too_big"]
    return counts


def cycle(db):
    """One task as a worker does it."""
    db.submit("q", {"topic": "grain"})
    lease = db.claim("q", holder="A", ttl=60)
    lease.renew()
    lease.save({"page": 1})
    following = lease.complete({"ok": True}, claim_next=True)
    assert following is None


def bulk(db):
    """Ten tasks as a worker with many slots does them."""
    db.submit_many("q", range(10))
    leases = db.claim_many("q", 10)
    db.renew_many(leases)
    db.complete_many([(lease, 1) for lease in leases])


def together(db):
    """Callers that share a commit."""
    all_at_once(db, *[lambda n=n: db.submit("q", n) for n in range(3)])
    all_at_once(db, *[lambda: db.claim("q").complete()] * 3)


@pytest.mark.parametrize("work", [cycle, bulk, together])
def test_nothing_is_prepared_again(db, work, monkeypatch):
    monkeypatch.setattr(groups, "SECONDS_MAX", 30)
    work(db)
    work(db)
    before = missed(db)
    for _ in range(ROUNDS):
        work(db)
    assert missed(db) == before


def test_a_statement_that_is_new_is_counted(db):
    """Else the test above could not fail."""
    before = missed(db)
    lane(db).connection().execute("SELECT 'never asked before'").fetchall()
    assert missed(db)["write"] == before["write"] + 1
