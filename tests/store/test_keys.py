"""API keys and the audit log in a file: there for every client at once, and beside relets that know of neither."""

import threading
from contextlib import closing

import apsw
import pytest

from relet.core.access import Role
from relet.core.audit import broken
from relet.core.errors import Conflict, Invalid
from relet.core.keys_tx import AuditRow
from relet.core.rules.audit import Act, AddAudit
from relet.core.rules.keys import FindKeys, ListKeys, MakeKey, NoteUses, RevokeKey
from relet.store.sqlite.verify import verify_file
from tests.store.inside import ask, lane, path_of

THREADS = 8


def make(db, key_id="k1", name="ci"):
    return db.backend.operate(MakeKey(id=key_id, digest="d", name=name, tenant="default", role=Role.WORKER))


def note(db, *operations):
    acts = [Act(key_id="k1", key_name="ci", tenant="default", operation=name, outcome="ok") for name in operations]
    return db.backend.operate(AddAudit(acts=acts))


def all_at_once(work):
    """What each of several threads answers, or is refused with."""
    answers, gate = [], threading.Barrier(THREADS)

    def run(n):
        gate.wait()
        try:
            answers.append(work(n))
        except Conflict as refused:
            answers.append(refused)

    threads = [threading.Thread(target=run, args=[n]) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_a_key_that_was_revoked_is_so_for_every_client_at_its_next_question(connect, clock):
    one, other = connect(clock), connect(clock)
    make(one)
    assert other.backend.operate(FindKeys(ids=["k1"]))[0].key.good
    other.backend.operate(RevokeKey(which="ci"))
    assert not one.backend.operate(FindKeys(ids=["k1"]))[0].key.good


def test_of_many_who_make_a_key_of_one_name_at_once_one_does(connect, clock):
    clients = [connect(clock) for _ in range(THREADS)]
    answers = all_at_once(lambda n: make(clients[n], f"k{n}"))
    assert sorted(type(answer).__name__ for answer in answers) == ["Conflict"] * (THREADS - 1) + ["Key"]
    assert len(clients[0].backend.operate(ListKeys())) == 1


def test_lines_of_many_writers_are_one_chain(connect, clock, tmp_path):
    clients = [connect(clock) for _ in range(2)]

    def write(n):
        for _ in range(20):
            note(clients[n % 2], "submit", f"claim {n}")

    all_at_once(write)
    rows = [AuditRow(*row) for row in ask(tmp_path, "SELECT * FROM api_audit ORDER BY seq")]
    assert len(rows) == THREADS * 40
    assert list(broken(rows, ask(tmp_path, "SELECT seq, digest FROM api_audit_end")[0])) == []
    assert clients[0].verify().ok


def test_a_line_is_on_disk_when_it_is_acknowledged_and_a_use_need_not_be(db):
    asked = []
    make(db)
    for name in ("write", "beat"):
        connection = lane(db, name).connection()
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event, name=name: asked.append((name, event["sql"])))
    note(db, "submit")
    db.backend.operate(NoteUses(ids=["k1"]))
    written = {(name, sql.split()[1]) for name, sql in asked if "api_audit (" in sql or "UPDATE api_keys" in sql}
    assert written == {("write", "INTO"), ("beat", "api_keys")}


def test_uses_are_noted_in_one_order_whoever_says_them(db):
    """So that two services that note the same keys do not wait for each other crosswise, where rows are locked."""
    asked = []
    connection = lane(db, "beat").connection()
    connection.exec_trace = lambda _, sql, bindings: asked.append((sql, bindings)) or True
    assert db.backend.operate(NoteUses(ids=["k3", "k1", "k2", "k1"])) == 3
    connection.exec_trace = None
    assert [bindings[1] for sql, bindings in asked if "UPDATE api_keys" in sql] == ["k1", "k2", "k3"]


def test_a_backup_has_the_keys_and_the_log(db, tmp_path):
    make(db)
    note(db, "submit")
    db.backup(tmp_path / "copy.db")
    copy = tmp_path / "copy.db"
    assert ask(tmp_path, "SELECT id FROM api_keys", path=copy) == [("k1",)]
    assert ask(tmp_path, "SELECT operation FROM api_audit", path=copy) == [("submit",)]
    assert verify_file(copy, None).ok


def test_a_users_own_transaction_reaches_neither(db):
    db.submit("q", 1)
    lease = db.claim("q")
    with lease.run() as run:
        for statement in ("DELETE FROM api_audit", "UPDATE api_audit_end SET seq = 0", "UPDATE api_keys SET id = ''"):
            with pytest.raises(Invalid, match="relet's tables"), run.transaction() as connection:
                connection.execute(statement)
        lease.release()


def test_a_file_that_was_tampered_with_is_found(db, tmp_path):
    note(db, "submit", "cancel")
    with closing(apsw.Connection(str(path_of(tmp_path)))) as connection:
        connection.execute("UPDATE api_audit SET key_name = 'somebody else' WHERE seq = 1")
    (finding,) = db.verify().findings
    assert (finding.rule, finding.row) == ("audit-is-whole", "audit 1")
