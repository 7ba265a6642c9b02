"""API keys and the audit log in a database: one key of a name and one chain of lines, whoever writes beside."""

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import relet
from relet.core import limits
from relet.core.access import Role
from relet.core.audit import broken
from relet.core.errors import Conflict
from relet.core.keys_tx import AuditRow
from relet.core.rules.audit import Act, AddAudit, ListAudit
from relet.core.rules.keys import FindKeys, Key, ListKeys, MakeKey, NoteUses, RevokeKey
from relet.core.rules.prune_audit import PruneAudit
from relet.testing import Clock
from tests.store_postgres.copies import Move, with_two_tasks
from tests.store_postgres.stops import stops, until_waiting
from tests.store_postgres.threads import all_at_once

pytestmark = pytest.mark.postgres
LINES = 20


def asked(url, query):
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query)
        return cursor.fetchall() if cursor.description else None


def make(db, key_id="k1", name="ci", **options):
    return db.backend.operate(
        MakeKey(id=key_id, digest="d", name=name, tenant="default", role=Role.WORKER, **options)
    )


def note(db, *operations):
    acts = [Act(key_id="k1", key_name="ci", tenant="default", operation=name, outcome="ok") for name in operations]
    return db.backend.operate(AddAudit(acts=acts))


def chain(url):
    rows = [AuditRow(*row) for row in asked(url, "SELECT * FROM relet.api_audit ORDER BY seq")]
    ends = asked(url, "SELECT seq, digest FROM relet.api_audit_end")
    return rows, ends[0] if ends else (0, "")


def test_a_key_lives_and_ends_as_on_a_file(pair):
    one, other = pair
    made = make(one, queues=["a"], expires_ms=86_400_000)
    assert make(one) == made, "the same request again"
    assert other.backend.operate(FindKeys(ids=["k1"]))[0].key == made
    with pytest.raises(Conflict, match="relet token revoke ci"):
        make(other, "k2")
    assert other.backend.operate(NoteUses(ids=["k1"])) == 1
    ended = other.backend.operate(RevokeKey(which="ci"))
    assert ended.revoked
    assert one.backend.operate(RevokeKey(which="k1")) == ended
    assert not one.backend.operate(FindKeys(ids=["k1"]))[0].key.good
    assert ended.used_at is not None
    make(one, "k2")
    assert [key.id for key in one.backend.operate(ListKeys())] == ["k2"]
    assert [key.id for key in one.backend.operate(ListKeys(revoked=True, limit=1))] == ["k1"]
    assert [key.id for key in one.backend.operate(ListKeys(revoked=True, after="k1"))] == ["k2"]


def test_who_makes_a_key_of_a_name_that_is_being_made_waits_and_is_refused(pair, isolated, monkeypatch):
    one, other = pair
    with stops(monkeypatch) as made, ThreadPoolExecutor() as threads:
        making = made.before_commit()
        first = making.begins(make, one)
        second = threads.submit(make, other, "k2")
        until_waiting(isolated)
        making.goes_on()
        assert type(first.result()) is Key
        with pytest.raises(Conflict):
            second.result()


def test_lines_of_writers_at_the_same_time_are_one_chain(isolated):
    with relet.connect(isolated) as db:
        db.sweep()
        gate = threading.Barrier(4)

        def write(n):
            gate.wait()
            for _ in range(LINES):
                note(db, f"claim {n}", "submit")

        all_at_once(*[lambda n=n: write(n) for n in range(4)])
        rows, end = chain(isolated)
        assert len(rows) == 4 * 2 * LINES
        assert list(broken(rows, end)) == []
        assert db.verify().findings == []
        newest = db.backend.operate(ListAudit(limit=3))
        assert [entry.seq for entry in newest] == [160, 159, 158]
        assert [entry.seq for entry in db.backend.operate(ListAudit(tenant="default", before=2))] == [1]
        assert db.backend.operate(ListAudit(tenant="other")) == []


def test_a_log_that_was_tampered_with_is_found(db, database):
    note(db, "submit", "cancel", "claim")
    assert db.verify().ok
    asked(database, "UPDATE relet.api_audit SET outcome = 'RELET-FORBIDDEN' WHERE seq = 1")
    asked(database, "DELETE FROM relet.api_audit WHERE seq = 3")
    assert [(finding.rule, finding.row) for finding in db.verify().findings] == [
        ("audit-is-whole", "audit 1"),
        ("audit-is-whole", "audit 2"),
    ]


def test_old_lines_leave_in_batches_beside_who_writes_and_the_rest_is_whole(isolated, monkeypatch):
    monkeypatch.setattr(limits, "AUDIT_PRUNED_MAX", 10)
    with relet.connect(isolated) as db:
        long_ago = Act(
            key_id="k1", key_name="ci", tenant="default", operation="cancel", outcome="ok", ago_ms=60 * limits.DAY_MS
        )
        db.backend.operate(AddAudit(acts=[long_ago] * 25))
        removed = []

        def prune():
            while not removed or removed[-1].more:
                removed.append(db.backend.operate(PruneAudit(older_ms=30 * limits.DAY_MS)))

        all_at_once(prune, *[lambda: [note(db, "submit") for _ in range(LINES)]] * 2)
        assert [one.removed for one in removed] == [10, 10, 5]
        rows, end = chain(isolated)
        assert len(rows) == 2 * LINES + 3
        assert list(broken(rows, end)) == []
        found = db.backend.verify_log()
        assert (found.lines, found.last, found.digest, found.ok) == (len(rows), *end, True)
        assert [line.seq for line in db.backend.operate(ListAudit(after=0, limit=2))] == [26, 27]
        told = db.backend.operate(ListAudit(tenant="default", after=26, before=30))
        assert [line.seq for line in told] == [row.seq for row in rows if 26 < row.seq < 30 and row.tenant]
        asked(isolated, "UPDATE relet.api_audit SET target = 'x' WHERE seq = 26")
        assert [finding.row for finding in db.backend.verify_log().findings] == ["audit 26"]
        assert db.verify().findings == db.backend.verify_log().findings


@pytest.fixture
def move(tmp_path, database):
    return with_two_tasks(Move(tmp_path, Clock(), database))


def test_a_place_with_keys_is_none_for_a_copy(move):
    for write, undo in ((make, "api_keys"), (lambda db: note(db, "submit"), "api_audit")):
        with move.target() as db:
            write(db)
        with pytest.raises(Conflict, match="tasks or the settings of another store"):
            move.copy()
        asked(move.url, f"DELETE FROM relet.{undo}")
    assert move.copy().ok


@pytest.mark.parametrize("what", ["made", "revoked", "noted"])
def test_a_copy_in_which_a_key_was_made_or_revoked_or_a_line_written_is_not_taken_back(move, what):
    """The one that comes back would take again what was revoked."""
    with move.source() as db:
        make(db)
        note(db, "submit")
    assert move.copy().ok
    with move.target() as db:
        assert db.backend.operate(FindKeys(ids=["k1"]))[0].key.good
        match what:
            case "made":
                make(db, "k2", "other")
            case "revoked":
                db.backend.operate(RevokeKey(which="ci"))
            case "noted":
                assert note(db, "cancel") == 2, "the chain goes on where it was"
        assert db.verify().ok
    with pytest.raises(Conflict, match="would lose it"):
        move.back()


def test_a_copy_whose_keys_are_as_they_were_is_taken_back(move):
    with move.source() as db:
        make(db)
        db.backend.operate(RevokeKey(which="ci"))
        make(db, "k2")
        note(db, "submit")
    assert move.copy().ok
    with move.target() as db:
        db.backend.operate(NoteUses(ids=["k2"]))
    move.back()
    with move.source() as db:
        assert db.backend.operate(FindKeys(ids=["k2"]))[0].key.good
