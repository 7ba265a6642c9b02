"""The audit log: appended to in one order, bound line by line, and read by tenant; what is altered is found."""

import pytest

from relet.core import limits
from relet.core.audit import broken, chained
from relet.core.errors import Invalid
from relet.core.keys_tx import AuditRow
from relet.core.model import date
from relet.core.rules.audit import Act, AddAudit, ListAudit


def act(operation="submit", tenant="default", **options):
    options = {"key_id": "k1", "key_name": "ci", "outcome": "ok"} | options
    return Act(operation=operation, tenant=tenant, **options)


@pytest.fixture
def add(scene):
    return lambda *acts: scene.backend.operate(AddAudit(acts=list(acts)))


@pytest.fixture
def read(scene):
    return lambda **options: scene.backend.operate(ListAudit(**options))


def rows(scene):
    return [AuditRow(*row) for row in scene.rows("SELECT * FROM api_audit ORDER BY seq")]


def test_what_was_done_is_told_newest_first_by_the_stores_clock(scene, add, read):
    assert add(act(target="t-1", address="10.0.0.1", ago_ms=500), act("cancel", outcome="RELET-FORBIDDEN")) == 2
    newest, first = read()
    assert (newest.seq, newest.operation, newest.outcome, newest.target) == (2, "cancel", "RELET-FORBIDDEN", None)
    assert newest.at == date(scene.clock.wall_ms())
    assert first.at == date(scene.clock.wall_ms() - 500)
    assert (first.key_id, first.key_name, first.tenant) == ("k1", "ci", "default")
    assert (first.target, first.address) == ("t-1", "10.0.0.1")


def test_nothing_done_is_no_line(scene, add):
    add(act())
    assert add() == 1
    assert len(rows(scene)) == 1


def test_pages_go_back_from_the_newest_and_a_tenant_has_its_own(add, read):
    add(act("a"), act("b", "blue"), act("c"), act("d", None, key_id=None, key_name=None))
    assert [entry.operation for entry in read()] == ["d", "c", "b", "a"]
    assert [entry.operation for entry in read(limit=2, before=3)] == ["b", "a"]
    assert [entry.operation for entry in read(tenant="default")] == ["c", "a"]
    assert [entry.operation for entry in read(tenant="default", limit=1, before=3)] == ["a"]
    assert read(tenant="red") == []


def test_what_a_stranger_sent_is_cut_and_not_refused(add, read):
    add(act(target="x" * 1_000 + "\x00", address="\x00\udcff"))
    (entry,) = read()
    assert (len(entry.target), entry.address) == (limits.NAME_CHARS_MAX, "\ufffd\ufffd")


def test_more_than_one_batch_is_refused_and_nothing_of_it_written(scene, add):
    with pytest.raises(Invalid, match="1001 items"):
        add(*[act()] * (limits.AUDIT_ITEMS_MAX + 1))
    assert rows(scene) == []
    assert add(*[act()] * limits.AUDIT_ITEMS_MAX) == limits.AUDIT_ITEMS_MAX


@pytest.fixture
def log(scene, add):
    """Five lines in two batches, and what the store says of the end."""
    add(act("a"), act("b"))
    add(act("c", target="t"), act("d"), act("e"))
    return rows(scene), scene.rows("SELECT seq, digest FROM api_audit_end")[0]


def found(log):
    return [(finding.rule, finding.row) for finding in broken(*log)]


def test_a_whole_log_is_found_whole(scene, log):
    assert found(log) == []
    assert len({row.digest for row in log[0]}) == 5
    assert found(([], (0, ""))) == []
    assert scene.backend.verify().findings == []


@pytest.mark.parametrize("field", [name for name in AuditRow.__struct_fields__ if name != "seq"])
def test_an_altered_line_is_found(log, field):
    setattr(log[0][2], field, 7 if field == "wall_ms" else "altered")
    assert found(log)[0] == ("audit-is-whole", "audit 3")


def test_a_line_altered_with_its_own_digest_is_found_by_the_next_one(log):
    lines, _ = log
    lines[2].outcome = "ok, really"
    lines[2].digest = chained(lines[1].digest, lines[2])
    assert found(log) == [("audit-is-whole", "audit 4")]


def test_a_line_that_was_removed_is_missed_also_at_either_end(log):
    lines, end = log
    assert found((lines[:2] + lines[3:], end)) == [("audit-is-whole", "audit 4")]
    assert found((lines[1:], end)) == [("audit-is-whole", "audit 2")]
    assert found((lines[:-1], end)) == [("audit-is-whole", "audit 4")]
    assert found(([], end)) == [("audit-is-whole", "audit 0")]
    (gap,) = broken(lines[:1] + lines[3:], end)
    assert gap.text == "the line before it is 1: some were removed"


def test_what_cannot_be_told_apart_is_not_bound_alike():
    """Fields are told by their places, and not by what stands beside what."""
    one, other = (
        AuditRow(seq=1, wall_ms=1, key_id=key_id, key_name=key_name, tenant=None, operation="o", target=None,
                 outcome="ok", address=None, digest="")
        for key_id, key_name in (("a", "bc"), ("ab", "c"))
    )  # fmt: skip
    assert chained("", one) != chained("", other)
    assert chained("", one) != chained("x", one)


def test_verify_finds_what_was_altered_in_the_store(scene, log):
    scene.rows("UPDATE api_audit SET outcome = 'ok' WHERE seq = 2")
    assert scene.backend.verify().findings == []
    scene.rows("UPDATE api_audit SET target = 'other' WHERE seq = 2")
    scene.rows("DELETE FROM api_audit WHERE seq = 5")
    assert [finding.row for finding in scene.backend.verify().findings] == ["audit 2", "audit 4"]
