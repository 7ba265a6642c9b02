"""`relet audit`: lines by page and by what is wanted, the chain checked, old lines gone."""

import pytest

from relet.cli.exits import Exit
from relet.connect import connect, operated_at
from relet.core import limits
from relet.core.rules.audit import Act, AddAudit

URL = "sqlite:///relet.db"


@pytest.fixture(autouse=True)
def small_pages(monkeypatch):
    """So that what is looked for is on several of them."""
    monkeypatch.setattr(limits, "PAGE_ITEMS_MAX", 3)


@pytest.fixture
def log(folder):
    """Eight lines of four days: two keys, two tenants, and a stranger."""
    connect(URL).close()
    with operated_at(URL) as store:
        store.operate(AddAudit(acts=[
            act(n, *line) for n, line in enumerate([
                ("ann", "a", "cancel", "ok"), ("eve", "a", "cancel", "RELET-FORBIDDEN"), ("ann", "b", "decide", "ok"),
                (None, None, "tasks", "RELET-NO-CREDENTIAL"), ("ann", "a", "cancel", "RELET-NOT-FOUND"),
                ("ann", "a", "requeue", "ok"), ("eve", "a", "audit", "RELET-FORBIDDEN"), ("ann", "b", "cancel", "ok"),
            ])
        ]))  # fmt: skip


def act(n, name, tenant, operation, outcome):
    return Act(
        key_id=name and f"id-{name}", key_name=name, tenant=tenant, operation=operation, outcome=outcome,
        target=f"t-{n}", address="10.0.0.9", ago_ms=(8 - n) * 12 * limits.HOUR_MS,
    )  # fmt: skip


def seqs(done):
    return [line["seq"] for line in done.json["lines"]]


def test_all_lines_are_told_newest_first_with_who_and_from_where(relet, log):
    done = relet("audit")
    head, first, *rest = done.out.splitlines()
    assert head.split() == ["SEQ", "AT", "KEY", "TENANT", "OPERATION", "TARGET", "OUTCOME", "FROM"]
    assert first.startswith("8 ") and first.endswith(
        "ann (id-ann)  b       cancel     t-7     ok                   10.0.0.9"
    )
    assert rest[3].split()[2:4] == ["-", "-"]
    assert len(rest) == 7
    assert done.code == Exit.OK


@pytest.mark.parametrize(("options", "wanted"), [
    (("--operation", "cancel"), [8, 5, 2, 1]), (("--key", "eve"), [7, 2]), (("--key", "id-ann"), [8, 6, 5, 3, 1]),
    (("--outcome", "ok"), [8, 6, 3, 1]), (("--outcome", "RELET-FORBIDDEN", "--operation", "cancel"), [2]),
    (("--since", "37h"), [8, 7, 6]), (("--tenant", "b"), [8, 3]), (("--tenant", "a", "--key", "ann"), [6, 5, 1]),
    (("--after", "0"), [1, 2, 3, 4, 5, 6, 7, 8]), (("--after", "2", "--operation", "cancel"), [5, 8]),
    (("--before", "3"), [2, 1]), (("--before", "7", "--after", "4"), [5, 6]),
    (("--after", "0", "--since", "37h"), [6, 7, 8]), (("--key", "nobody"), []),
])  # fmt: skip
def test_what_is_wanted_is_found_on_whichever_page(relet, log, options, wanted):
    done = relet("audit", "--json", *options)
    assert seqs(done) == wanted
    assert done.json["next"] is None
    assert ("no such line" in done.err) is (not wanted)


def test_a_page_says_how_to_go_on_both_ways(relet, log):
    first = relet("audit", "--json", "--limit", 3, "--outcome", "ok")
    assert (seqs(first), first.json["next"]) == ([8, 6, 3], 3)
    assert seqs(relet("audit", "--json", "--outcome", "ok", "--before", 3)) == [1]
    assert "--before 7" in relet("audit", "--limit", 2).err
    assert "--after 2" in relet("audit", "--limit", 2, "--after", 0).err


def test_the_tenant_that_is_set_for_all_commands_is_the_one_that_is_shown(relet, log, monkeypatch):
    monkeypatch.setenv("RELET_TENANT", "b")
    assert seqs(relet("audit", "--json")) == [8, 3]


def test_a_log_that_holds_is_said_to_hold_with_the_digest_to_keep(relet, log):
    done = relet("audit", "--verify", "--json")
    assert done.code == Exit.OK
    assert (done.json["lines"], done.json["last"], done.json["findings"]) == (8, 8, [])
    assert done.json["digest"] in relet("audit", "--verify").err
    connect("sqlite:///empty.db").close()
    assert "0 lines: the chain holds" in relet("audit", "--verify", "--url", "sqlite:///empty.db").err


def test_where_it_does_not_hold_is_said_line_by_line(relet, log, altered):
    altered("UPDATE api_audit SET outcome = 'ok' WHERE seq = 2")
    done = relet("audit", "--verify")
    assert done.code == Exit.FINDINGS
    assert done.out.startswith("audit 2: its digest is not that of what it says")
    assert relet("audit", "--verify", "--json").json["findings"][0]["row"] == "audit 2"


@pytest.fixture
def altered(folder):
    import apsw

    def run(statement):
        connection = apsw.Connection(str(folder / "relet.db"))
        connection.execute(statement)
        connection.close()

    return run


def test_old_lines_leave_and_the_rest_is_verified_as_before(relet, log):
    dry = relet("audit", "--prune", "--older", "30h", "--recent-too", "--dry-run")
    assert (dry.out, "would remove 6 lines, up to 6" in dry.err) == ("", True)
    assert relet("audit", "--prune", "--older", "30h", "--recent-too").out == "removed 6 lines, up to 6\n"
    assert seqs(relet("audit", "--json")) == [9, 8, 7]
    assert relet("audit", "--verify").code == Exit.OK
    assert "no line is so old" in relet("audit", "--prune", "--older", "31d").err
    assert relet("audit", "--prune", "--older", "31d", "--json").json == {
        "removed": 0,
        "upto": None,
        "more": False,
        "dry_run": False,
    }


def test_it_goes_batch_by_batch(relet, log, monkeypatch):
    monkeypatch.setattr(limits, "AUDIT_PRUNED_MAX", 2)
    assert relet("audit", "--prune", "--older", "30h", "--recent-too", "--dry-run", "--json").json["removed"] == 6
    assert relet("audit", "--prune", "--older", "30h", "--recent-too", "--json").json == {
        "removed": 6, "upto": 6, "more": False, "dry_run": False
    }  # fmt: skip
    assert relet("audit", "--verify").code == Exit.OK


def test_where_more_is_old_than_one_command_removes_it_says_so(relet, log, monkeypatch):
    monkeypatch.setattr(limits, "AUDIT_PRUNED_MAX", 2)
    monkeypatch.setattr(limits, "AUDIT_BATCHES_MAX", 2)
    dry = relet("audit", "--prune", "--older", "30h", "--recent-too", "--dry-run", "--json")
    assert dry.json == {"removed": 4, "upto": 4, "more": True, "dry_run": True}
    first, second = (relet("audit", "--prune", "--older", "30h", "--recent-too") for _ in range(2))
    assert (first.out, "the same command again" in first.err) == ("removed 4 lines, up to 4\n", True)
    assert (second.out, "again" in second.err) == ("removed 2 lines, up to 6\n", False)


@pytest.mark.parametrize(("options", "said"), [
    (("--prune", "--older", "29d"), "--recent-too"), (("--recent-too",), "goes with --prune"),
    (("--dry-run",), "goes with --prune"), (("--verify", "--key", "ann"), "whole log"),
    (("--prune", "--older", "60d", "--after", "1"), "whole log"), (("--older", "60d"), "goes with --prune"),
    (("--verify", "--prune", "--older", "60d"), "goes without"), (("--prune",), "--prune --older 365d"),
    (("--verify", "--url", "http://127.0.0.1:1"), "Name the store"), (("--before", "0"), "before"),
    (("--after", "-1"), "after"), (("--since", "x"), "since"), (("--url", "sqlite://"), "in memory"),
])  # fmt: skip
def test_what_does_not_go_together_is_refused_and_nothing_leaves(relet, log, options, said):
    done = relet("audit", *options)
    assert (done.code, said in done.err) == (Exit.USAGE, True)
    assert len(seqs(relet("audit", "--json"))) == 8


def test_a_store_that_is_not_there_is_not_made(relet, folder):
    assert relet("audit", "--url", "sqlite:///none.db").code == Exit.NOT_FOUND
    assert not (folder / "none.db").exists()
