"""What must hold of a store is judged row by row: each thing that can be wrong is found, and named."""

import apsw
import pytest

import relet
from relet.core import limits
from relet.core.invariants import RULES
from relet.core.model import GivenBack
from relet.store.sqlite.verify import verify
from relet.testing import store


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """A store in which everything has happened that leaves a row, as one file."""
    with store() as db:
        db.submit("q", 1, id="done")
        lease = db.claim("q", holder="A", ttl=60)
        for n in (1, 2):
            lease.save(n)
        with lease.run() as run:
            run.step("search", lambda: 7)
            run.effect("publish", {"to": "site"}, lambda *_: {"id": 1})
            run.attach("page", b"bytes")
            lease.complete({"text": "x" * limits.FILE_BYTES_MIN})
        db.submit("q", 1, id="taken")
        db.claim("q", ttl=60)
        db.clock.advance("61s")
        db.claim("q", ttl=60).save(1)
        db.submit("q", 1, id="waiting")
        db.claim(task_id="waiting").park("go")
        db.submit("q", 1, id="failed", max_attempts=1)
        db.claim(task_id="failed").fail("broken")
        db.requeue("failed")
        db.claim(task_id="failed").fail("broken again", retry=False)
        db.submit("q", 1, id="unknown")
        with db.claim(task_id="unknown").run() as run, pytest.raises(relet.Parked):
            run.effect("charge", {}, lambda *_: 1 / 0)
        db.submit("q", 1, id="ready")
        db.claim(task_id="ready").give_back(GivenBack.HOLDER_EXPIRED)
        assert db.verify().findings == []
        place = tmp_path_factory.mktemp("image") / "image.db"
        db.backend.store._write.connection().execute("VACUUM INTO ?", (str(place),))
    return place


@pytest.fixture
def broken(image):
    """The findings in that store after some statements that no rule of relet would make."""

    def broken(*statements, exists=None):
        connection = apsw.Connection(str(image), flags=apsw.SQLITE_OPEN_READONLY)
        copy = apsw.Connection(":memory:")
        with copy.backup("main", connection, "main") as copying:
            copying.step()
        connection.close()
        for (name,) in copy.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            copy.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            copy.execute(statement)
        return verify(copy, "copy", exists)

    return broken


def of(task):
    return f"task_seq = (SELECT seq FROM tasks WHERE id = '{task}')"


PUBLISH = "(SELECT id FROM effects WHERE name = 'publish')"
WRONG = [
    ("one-current-token", "task done", [f"UPDATE leases SET ended = NULL, ended_ms = NULL WHERE {of('done')}"]),
    ("one-current-token", "task taken", [f"UPDATE leases SET ended = 'completed', ended_ms = 0 WHERE {of('taken')}"]),
    ("one-current-token", "task taken", ["UPDATE tasks SET token = token - 1 WHERE id = 'taken'"]),
    ("leases-match-history", "task done", [f"DELETE FROM leases WHERE {of('done')}"]),
    ("history-in-order", "task ready", ["UPDATE tasks SET state = 'done' WHERE id = 'ready'"]),
    ("history-in-order", "task taken", [
        f"UPDATE events SET token = 1 WHERE kind = 'claimed' AND token > 2 AND {of('taken')}"]),
    ("history-in-order", "task done", [f"UPDATE events SET token = 77 WHERE kind = 'saved' AND {of('done')}"]),
    ("history-in-order", "task taken", [f"DELETE FROM events WHERE kind = 'lapsed' AND {of('taken')}"]),
    ("history-in-order", "task ready", [
        "UPDATE events SET kind = 'stepped', token = 9 WHERE " + of("ready")]),
    ("chain-of-events", "task done", [f"UPDATE events SET before = 1 WHERE kind = 'completed' AND {of('done')}"]),
    ("chain-of-events", "task ready", ["UPDATE tasks SET last_event = 0 WHERE id = 'ready'"]),
    ("legal-moves", "task failed", [f"UPDATE events SET state = 'done' WHERE kind = 'requeued' AND {of('failed')}"]),
    ("legal-moves", "task ready", ["UPDATE tasks SET state = 'cancelled' WHERE id = 'ready'"]),
    ("attempts", "task taken", ["UPDATE tasks SET losses = 0 WHERE id = 'taken'"]),
    ("attempts", "task failed", ["UPDATE tasks SET failures = 9 WHERE id = 'failed'"]),
    ("attempts", "task taken", [f"UPDATE leases SET attempt = 9 WHERE took_over IS NULL AND {of('taken')}"]),
    ("ends-in-time", "task done", [f"UPDATE leases SET ended_ms = expires_ms WHERE {of('done')}"]),
    ("ends-in-time", "task taken", [
        f"UPDATE leases SET ended_ms = expires_ms - 1 WHERE ended = 'lapsed' AND {of('taken')}"]),
    ("waits", "task waiting", ["UPDATE waits SET decision = 'accept' WHERE name = 'go'"]),
    ("waits", "task waiting", ["UPDATE tasks SET waiting_for = 'stop' WHERE id = 'waiting'"]),
    ("waits", "task ready", ["UPDATE tasks SET wait_seq = 1 WHERE id = 'ready'"]),
    ("effects", "task ready", ["UPDATE tasks SET unsettled = 1 WHERE id = 'ready'"]),
    ("effects", "task unknown", ["UPDATE effects SET state = 'started' WHERE name = 'charge'"]),
    ("effects", "task done", ["UPDATE effects SET tries = 0 WHERE name = 'publish'"]),
    ("receipts-forward", "task done", ["UPDATE effects SET state = 'failed' WHERE name = 'publish'"]),
    ("receipts-forward", "task done", [
        f"UPDATE events SET detail = json_object('effect', {PUBLISH}) WHERE kind = 'completed' AND {of('done')}"]),
    ("written-under-a-lease", "task done", [f"UPDATE steps SET token = 77 WHERE {of('done')}"]),
    ("written-under-a-lease", "task done", [f"UPDATE artifacts SET token = 77 WHERE {of('done')}"]),
    ("written-under-a-lease", "task done", [f"UPDATE checkpoints SET token = 77 WHERE version = 1 AND {of('done')}"]),
    ("written-under-a-lease", "task done", ["UPDATE checkpoints SET version = 9 WHERE token = 1 AND version = 2"]),
    ("belongs-to-a-task", "task ready", [f"DELETE FROM inputs WHERE {of('ready')}"]),
    ("belongs-to-a-task", "inputs 6", ["DELETE FROM tasks WHERE id = 'ready'"]),
    ("belongs-to-a-task", "event", ["UPDATE events SET task_seq = 0 WHERE " + of("ready")]),
    ("belongs-to-a-task", "event", ["UPDATE events SET task_seq = 99 WHERE " + of("ready")]),
    ("rows-are-read", "event", ["UPDATE events SET kind = 'nothing' WHERE " + of("ready")]),
    ("totals", "queue q of default", ["UPDATE totals SET submitted = 5"]),
    ("totals", "queue q of default", ["DELETE FROM totals"]),
    ("totals", "queue q of default", ["UPDATE totals SET takeovers = 0"]),
    ("tokens-below-their-mark", "lease", ["UPDATE meta SET mark = 3"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "row", "statements"), WRONG, ids=[f"{rule}-{n}" for n, (rule, *_) in enumerate(WRONG)]
)
def test_each_thing_that_can_be_wrong_is_found_and_the_row_is_named(broken, rule, row, statements):
    found = broken(*statements).findings
    assert any(one.rule == rule and one.row.startswith(row) for one in found), found


def test_every_rule_is_broken_by_one_of_these():
    assert {rule for rule, *_ in WRONG} >= set(RULES)


def test_a_whole_store_has_no_findings(broken):
    assert (verified := broken()).ok
    assert (verified.tasks, verified.leases, verified.more) == (6, 8, False)


def test_bytes_that_are_named_and_gone_are_found(broken):
    assert {one.rule for one in broken(exists=lambda _: False).findings} == {"bytes-are-there"}
    assert (looked := broken(exists=lambda _: True)).ok
    assert looked.artifacts == 2


def test_the_list_of_findings_ends_somewhere(broken, monkeypatch):
    monkeypatch.setattr(limits, "FINDINGS_MAX", 2)
    verified = broken("UPDATE tasks SET attempt = 90")
    assert (len(verified.findings), verified.more, verified.ok) == (2, True, False)


def test_a_row_that_the_file_itself_does_not_allow_is_found(broken):
    odd = "UPDATE tasks SET state = 'odd' WHERE id = 'done'"
    found = broken("PRAGMA ignore_check_constraints = ON", odd, "PRAGMA ignore_check_constraints = OFF").findings
    assert {(one.rule, one.row) for one in found} == {("file-is-sound", "file"), ("rows-are-read", "task done")}
