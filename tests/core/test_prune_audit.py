"""The oldest lines of the audit log leave, never young ones unasked; what is left is whole, and says what left."""

import pytest

from relet.core import limits
from relet.core.audit import PRUNED, broken, chained
from relet.core.errors import Invalid
from relet.core.keys_tx import AuditRow
from relet.core.rules.audit import Act, AddAudit, ListAudit
from relet.core.rules.prune_audit import PruneAudit, PrunedAudit

DAY_MS = limits.DAY_MS
MONTH = PruneAudit(older_ms=30 * DAY_MS)


def act(operation):
    return Act(key_id="k1", key_name="ci", tenant="default", operation=operation, outcome="ok")


@pytest.fixture
def add(scene):
    return lambda *names: scene.backend.operate(AddAudit(acts=[act(name) for name in names]))


@pytest.fixture
def prune(scene):
    return scene.backend.operate


@pytest.fixture
def old(scene, add):
    """Three lines of 60 days ago, two of now."""
    add("a", "b", "c")
    scene.clock.advance("60d")
    add("d", "e")


def rows(scene):
    return [AuditRow(*row) for row in scene.rows("SELECT * FROM api_audit ORDER BY seq")]


def end(scene):
    return scene.rows("SELECT seq, digest FROM api_audit_end")[0]


def found(scene):
    return [finding.row for finding in broken(rows(scene), end(scene))]


def test_what_is_old_leaves_and_the_log_tells_of_it(scene, old, prune):
    last = rows(scene)[2]
    assert prune(MONTH) == PrunedAudit(removed=3, upto=3, more=False)
    told = rows(scene)[-1]
    assert [(row.seq, row.operation) for row in rows(scene)] == [(4, "d"), (5, "e"), (6, PRUNED)]
    assert (told.target, told.outcome, told.tenant, told.wall_ms) == (
        f"3:{last.digest}", "ok", None, scene.clock.wall_ms()
    )  # fmt: skip
    assert found(scene) == []
    assert scene.backend.verify().findings == []
    whole = scene.backend.verify_log()
    assert (whole.lines, whole.last, whole.digest, whole.ok) == (3, 6, told.digest, True)


def test_the_log_goes_on_behind_it_and_is_pruned_again(scene, old, prune, add):
    prune(MONTH)
    add("f")
    scene.clock.advance("31d")
    assert prune(MONTH) == PrunedAudit(removed=4, upto=7, more=False)
    assert [row.operation for row in rows(scene)] == [PRUNED]
    assert found(scene) == []
    add("g")
    assert found(scene) == []


def test_nothing_old_is_no_line(scene, add, prune):
    add("a")
    scene.clock.advance("29d")
    assert prune(MONTH) == PrunedAudit(removed=0, upto=None, more=False)
    assert len(rows(scene)) == 1


def test_the_instant_itself_is_old_enough(scene, add, prune):
    add("a")
    scene.clock.advance("30d")
    assert prune(MONTH).removed == 1


def test_what_is_young_leaves_only_by_an_explicit_word(scene, add, prune):
    add("a")
    scene.clock.advance("10d")
    with pytest.raises(Invalid, match="--recent-too") as caught:
        prune(PruneAudit(older_ms=30 * DAY_MS - 1))
    assert caught.value.detail["field"] == "older_ms"
    assert len(rows(scene)) == 1
    assert prune(PruneAudit(older_ms=9 * DAY_MS, recent_too=True)).removed == 1


def test_nothing_behind_a_younger_line_leaves_however_old_it_says_it_is(scene, prune):
    """Clocks step, and lines come late: what is left has no gap."""
    scene.clock.advance("90d")
    ages = (60, 50, 5, 40)
    acts = [
        Act(key_id=None, key_name=None, tenant=None, operation="o", outcome="ok", ago_ms=n * DAY_MS) for n in ages
    ]
    scene.backend.operate(AddAudit(acts=acts))
    assert prune(MONTH) == PrunedAudit(removed=2, upto=2, more=False)
    assert [row.seq for row in rows(scene)] == [3, 4, 5]


def test_it_goes_batch_by_batch_each_of_which_leaves_the_log_whole(scene, add, prune, monkeypatch):
    monkeypatch.setattr(limits, "AUDIT_PRUNED_MAX", 2)
    add("a", "b", "c", "d", "e")
    scene.clock.advance("60d")
    dry = PruneAudit(older_ms=MONTH.older_ms, dry_run=True)
    assert prune(dry) == PrunedAudit(removed=2, upto=2, more=True)
    assert prune(PruneAudit(older_ms=MONTH.older_ms, dry_run=True, after=4)) == PrunedAudit(
        removed=1, upto=5, more=False
    )
    assert len(rows(scene)) == 5
    answers = []
    while not answers or answers[-1].more:
        answers.append(prune(MONTH))
        assert found(scene) == []
    assert [(answer.removed, answer.upto) for answer in answers] == [(2, 2), (2, 4), (1, 5)]
    assert [row.operation for row in rows(scene)] == [PRUNED] * 3


def test_who_removes_the_oldest_lines_by_hand_is_found(scene, old, prune, add):
    scene.rows("DELETE FROM api_audit WHERE seq <= 2")
    (finding,) = broken(rows(scene), end(scene))
    assert (finding.row, "no line tells" in finding.text) == ("audit 3", True)
    add(PRUNED)  # as a line, without a word of what has left
    assert found(scene) == ["audit 3"]


def test_who_removes_more_than_was_pruned_is_found(scene, old, prune):
    prune(MONTH)
    scene.rows("DELETE FROM api_audit WHERE seq = 4")
    assert found(scene) == ["audit 5"]


def test_who_alters_the_oldest_line_that_is_left_is_found(scene, old, prune):
    prune(MONTH)
    scene.rows("UPDATE api_audit SET target = 'other' WHERE seq = 4")
    assert found(scene) == ["audit 4"]
    lines = rows(scene)
    lines[0].digest = chained("made up", lines[0])
    assert [finding.row for finding in broken(lines, end(scene))] == ["audit 5", "audit 4"]


def test_a_page_goes_on_to_newer_lines_from_any_of_them(scene, old):
    def read(**options):
        return [line.operation for line in scene.backend.operate(ListAudit(**options))]

    assert read(after=0) == ["a", "b", "c", "d", "e"]
    assert read(after=1, limit=2) == ["b", "c"]
    assert read(after=3, tenant="default") == ["d", "e"]
    assert read(after=1, before=4, tenant="default") == read(after=1, before=4) == ["b", "c"]
    assert read(after=0, tenant="blue") == read(after=5) == []
