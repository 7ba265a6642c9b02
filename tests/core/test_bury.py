"""Leases that are bound to a lock end when its process is proven dead; those of others, and those handed on, stay."""

import pytest

from relet.core import limits
from relet.core.bond import bound
from relet.core.model import Cause, State
from relet.core.rules.bury import Bind, Bury, FindHolders, Forget
from relet.core.rules.renew import Renewed
from relet.core.rules.save import Save
from relet.core.tx import HolderRow
from relet.store.sqlite.death import BIND, BURY, FORGET, HOLDERS
from tests.core.scene import TTL_MS
from tests.core.talk import RAW

LOCK = "0123abcd"
ROW = HolderRow(LOCK, 7, "this boot")


@pytest.fixture
def answer(scene):
    """The engine's own requests, which are in no catalog."""
    operations = {Bind: BIND, FindHolders: HOLDERS, Bury: BURY, Forget: FORGET}
    return lambda request: scene.backend.store.answer(operations[type(request)], request, "default")


def hold(scene, *ids):
    scene.submit(*ids, ttl_ms=TTL_MS)
    grants = scene.claim(n=len(ids), call_id=bound(LOCK, "c1"))
    assert len(grants) == len(ids)
    return grants


def of_another_process(scene, monkeypatch):
    monkeypatch.setattr(scene.backend.store.identity.bonds, "is_ours", lambda _lock: False)
    monkeypatch.setattr(scene.backend.store.identity.bonds, "own_locks", list)


def test_all_that_is_bound_ends_at_once_and_everybody_is_told_why(scene, answer):
    scene.backend.vouch(LOCK)
    answer(Bind(row=ROW))
    hold(scene, "a", "b")
    scene.held("other")
    assert answer(FindHolders()) == [ROW]
    buried = answer(Bury(lock=LOCK))
    assert (buried.n, buried.more) == (2, False)
    assert [scene.task(one).state for one in ("a", "b", "other")] == [State.READY, State.READY, State.LEASED]
    assert answer(FindHolders()) == []
    lapsed = scene.events("a")[-1]
    assert (lapsed.kind, lapsed.detail["why"]) == (Cause.LAPSED, "holder_died")
    assert "its process has ended" in scene.task("a").error
    (again,) = scene.claim(task_id="a", holder="B")
    assert str(again.took_over.reason) == "holder_died"


def test_many_end_in_batches_and_the_last_one_forgets_the_lock(scene, answer, monkeypatch):
    monkeypatch.setattr(limits, "LAPSES_PER_BATCH", 2)
    scene.backend.vouch(LOCK)
    answer(Bind(row=ROW))
    hold(scene, "a", "b", "c")
    first = answer(Bury(lock=LOCK))
    assert (first.n, first.more, answer(FindHolders())) == (2, True, [ROW])
    last = answer(Bury(lock=LOCK))
    assert (last.n, last.more, answer(FindHolders())) == (1, False, [])


def test_a_lock_is_forgotten_only_when_nothing_is_held_under_it(scene, answer):
    scene.backend.vouch(LOCK)
    answer(Bind(row=ROW))
    (grant,) = hold(scene, "a")
    assert not answer(Forget(lock=LOCK))
    assert answer(FindHolders()) == [ROW]
    assert answer(Forget(lock=LOCK, anyhow=True))
    assert (answer(FindHolders()), scene.task("a").state) == ([], State.LEASED)
    scene.complete(grant)
    answer(Bind(row=ROW))
    assert answer(Forget(lock=LOCK))


@pytest.mark.parametrize("verb", ["renew", "save"])
def test_whoever_acts_under_the_handle_in_another_process_looses_the_bond(scene, answer, monkeypatch, verb):
    scene.backend.vouch(LOCK)
    answer(Bind(row=ROW))
    (grant,) = hold(scene, "a")
    of_another_process(scene, monkeypatch)
    if verb == "renew":
        assert scene.renew(grant) == [Renewed(left_ms=TTL_MS)]
    else:
        scene.ask(Save(handle=grant.handle, name="main", value=RAW))
    assert answer(Bury(lock=LOCK)).n == 0
    assert scene.task("a").state is State.LEASED


def test_whoever_holds_the_lock_keeps_the_bond(scene, answer):
    scene.backend.vouch(LOCK)
    answer(Bind(row=ROW))
    (grant,) = hold(scene, "a")
    scene.renew(grant)
    scene.ask(Save(handle=grant.handle, name="main", value=RAW))
    assert answer(Bury(lock=LOCK)).n == 1
