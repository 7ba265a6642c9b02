"""Looks that are answered where they are asked: none waits for anybody, and none is older than its question."""

from contextlib import closing

import apsw
import pytest

import relet
from relet.core.access import Role
from relet.core.errors import Unavailable
from relet.core.rules.keys import FindKeys, MakeKey, NoteUses, RevokeKey
from relet.store.sqlite.lane import Lane
from tests.store.forking import held_elsewhere

ASK = FindKeys(ids=["k1"])


@pytest.fixture(params=["file", "memory"])
def store(request, tmp_path):
    url = f"sqlite:///{tmp_path / 'work.db'}" if request.param == "file" else "sqlite://"
    with relet.connect(url) as db:
        made = MakeKey(id="k1", digest="d", name="ci", tenant="default", role=Role.WORKER)
        db.backend.operate(made)
        yield db.backend


def test_it_sees_what_was_committed_before_it(store):
    (found,) = store.operate_at_once(ASK)
    assert (found.key.name, found.key.good) == ("ci", True)
    store.operate(RevokeKey(which="k1"))
    (found,) = store.operate_at_once(ASK)
    assert not found.key.good


def test_where_another_thread_is_in_the_way_nobody_is_waited_for(store, monkeypatch):
    waits, attempt = [], Lane.attempt
    monkeypatch.setattr(
        Lane, "attempt", lambda lane, begin, work, *wait: (waits.extend(wait), attempt(lane, begin, work, *wait))[1]
    )
    with held_elsewhere(store.store._glance.lock):
        assert (store.operate_at_once(ASK), waits) == (None, [0, 0])
    assert store.operate_at_once(ASK) == store.operate(ASK)


def test_writers_of_the_file_are_not_in_the_way(tmp_path):
    path = tmp_path / "work.db"
    with relet.connect(f"sqlite:///{path}") as db, closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        assert db.backend.operate_at_once(FindKeys(ids=["none"])) == [None]


def test_only_what_reads_is_answered_so(store):
    with pytest.raises(AssertionError, match="writers wait"):
        store.operate_at_once(NoteUses(ids=["k1"]))


def test_a_store_that_was_closed_says_so(store):
    store.close()
    with pytest.raises(Unavailable, match="closed"):
        store.operate_at_once(ASK)
