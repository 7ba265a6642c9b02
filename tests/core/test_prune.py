"""Finished tasks leave at the very instant of their age, in bounded batches, and nothing that is owed leaves."""

import pytest

from relet.core import limits
from relet.core.errors import Conflict, NotFound
from relet.core.limits import DAY_MS
from relet.core.rules.prune import Prune
from relet.core.rules.set_queue import SetQueue
from tests.core.durable import keyed
from tests.core.durable import start as start_effect


def done(scene, *ids):
    for name in ids:
        scene.complete(scene.held(name))
    scene.submit("newest", queue="elsewhere")


def pruned(scene, **ask):
    return scene.ask(Prune(**ask)).ids


def test_at_the_very_instant_of_its_age_a_task_leaves(scene):
    done(scene, "t")
    scene.pass_ms(DAY_MS - 1)
    assert pruned(scene, older_ms=DAY_MS) == []
    scene.pass_ms(1)
    assert pruned(scene, older_ms=DAY_MS, dry_run=True) == pruned(scene, older_ms=DAY_MS) == ["t"]


def test_without_an_age_the_queue_says_how_long(scene):
    done(scene, "t")
    scene.pass_ms(DAY_MS)
    assert pruned(scene) == []
    scene.ask(SetQueue(name="q", retention_ms=DAY_MS))
    assert pruned(scene) == ["t"]


def test_a_batch_is_bounded_by_tasks_rows_and_what_it_looks_at(scene, monkeypatch):
    done(scene, *"abcde")
    scene.pass_ms(DAY_MS)
    monkeypatch.setattr(limits, "PRUNE_SPAN", 4)
    monkeypatch.setattr(limits, "PRUNE_ITEMS_MAX", 3)
    first = scene.ask(Prune(older_ms=DAY_MS))
    assert (first.ids, first.cursor) == (["a", "b", "c"], 3)
    monkeypatch.setattr(limits, "PRUNE_SPAN", 1)
    second = scene.ask(Prune(older_ms=DAY_MS, after=3))
    assert (second.ids, second.cursor) == (["d"], 4)
    monkeypatch.setattr(limits, "PRUNE_ROWS", 1)
    assert scene.ask(Prune(older_ms=DAY_MS, after=4)).cursor == 5
    assert scene.ask(Prune(older_ms=DAY_MS, after=5)).cursor is None


def test_the_newest_event_of_the_store_stays(scene):
    scene.complete(scene.held())
    scene.pass_ms(DAY_MS)
    assert pruned(scene, older_ms=DAY_MS) == []


@pytest.mark.parametrize(("promised_ms", "kept_days"), [(DAY_MS, 30), (40 * DAY_MS, 40)])
def test_a_task_stays_as_long_as_its_receipts_must(scene, promised_ms, kept_days):
    grant = scene.held()
    start_effect(scene, grant, contract=keyed(promised_ms))
    scene.backend.store._write.connection().execute("UPDATE effects SET state = 'failed'")
    scene.backend.store._write.connection().execute("UPDATE tasks SET unsettled = 0")
    scene.complete(grant)
    scene.submit("newest", queue="elsewhere")
    scene.pass_ms(kept_days * DAY_MS - 1)
    assert pruned(scene, older_ms=DAY_MS) == []
    scene.pass_ms(1)
    assert pruned(scene, older_ms=DAY_MS) == ["t"]


def test_what_has_left_is_gone_for_everybody(scene):
    grant = scene.held()
    scene.complete(grant)
    scene.submit("newest", queue="elsewhere")
    scene.pass_ms(DAY_MS)
    assert pruned(scene, older_ms=DAY_MS) == ["t"]
    for answer, kind in [
        (scene.submit("t"), Conflict), (scene.submit("new", "t"), Conflict), (scene.task(), NotFound),
        (scene.complete(grant).outcomes[0], Conflict), (scene.renew(grant)[0], Conflict),
    ]:  # fmt: skip
        assert isinstance(answer, kind)
        assert answer.code == "RELET-GONE"
    assert scene.task("new").code == "RELET-NOT-FOUND"
    assert scene.rows("SELECT id, state, token, length(result_digest) FROM tombstones")[0][:3] == ("t", "done", 1)
