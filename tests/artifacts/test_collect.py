"""What nobody names goes, what somebody names or may be about to name stays."""

import os

import pytest

from relet.artifacts import collect as collecting
from relet.artifacts.collect import collect
from relet.core.errors import Invalid
from tests.artifacts.places import drafts, path_of, uri

DAY_S = 86_400


def named(*data):
    """As a store answers which of these are named: nothing that was not asked about."""
    return lambda uris: {uri(one) for one in data} & set(uris)


def nobody(_uris):
    return set()


def test_what_nobody_names_is_removed_and_what_somebody_names_is_not(place, clock):
    place.put(b"named")
    place.put(b"nobody's")
    clock.advance(DAY_S)
    assert collect(place, named(b"named")) == (1, 8)
    assert place.exists(uri(b"named"))
    assert not place.exists(uri(b"nobody's"))
    assert collect(place, named(b"named")) == (0, 0)


def test_what_is_young_stays_though_nobody_names_it(place, clock):
    place.put(b"this")
    clock.advance(DAY_S - 1)
    assert collect(place, nobody) == (0, 0)
    clock.advance(1)
    assert collect(place, nobody) == (1, 4)


@pytest.mark.parametrize("age_s", [0, 3599, -1, float("nan"), True, "soon", None])
def test_less_than_an_hour_is_refused(local, age_s):
    local.put(b"this")
    with pytest.raises(Invalid) as refused:
        collect(local, nobody, age_s)
    assert refused.value.detail["field"] == "older_than_s"
    assert local.exists(uri(b"this"))


def test_an_hour_is_enough_and_a_test_may_say_less(local, clock):
    local.put(b"this")
    clock.advance(3600)
    assert collect(local, nobody, 3600).n == 1
    local.put(b"this")
    assert collect(local, nobody, 0, least_s=0).n == 1


def test_bytes_that_are_put_again_while_a_collection_is_under_way_stay(place, clock):
    """The put comes after the collection has seen the artifact old, and has been told that nobody names it."""
    place.put(b"this")
    clock.advance(DAY_S)

    def nobody_yet(_uris):
        place.put(b"this")
        return set()

    collect(place, nobody_yet)
    assert place.read(uri(b"this")) == b"this"


def test_a_collection_that_stood_still_for_days_takes_nothing_that_was_put_and_named_meanwhile(place, clock):
    place.put(b"this")
    clock.advance(DAY_S)

    def answers_late(_uris):
        place.put(b"this")  # and names it, which the answer, already on its way, does not know
        clock.advance(3 * DAY_S)
        return set()

    collect(place, answers_late)
    assert place.read(uri(b"this")) == b"this"


def test_an_answer_that_fails_removes_nothing(place, clock):
    place.put(b"this")
    clock.advance(DAY_S)

    def away(_uris):
        raise ConnectionError("the store is away")

    with pytest.raises(ConnectionError):
        collect(place, away)
    assert place.exists(uri(b"this"))


def test_names_are_asked_for_in_batches(local, clock, monkeypatch):
    monkeypatch.setattr(collecting, "ARTIFACTS_PER_BATCH", 3)
    for n in range(7):
        local.put(str(n).encode())
    clock.advance(DAY_S)
    asked = []

    def referenced(uris):
        asked.append(list(uris))
        return {uri(b"3")}

    assert collect(local, referenced) == (6, 6)
    assert [len(batch) for batch in asked] == [3, 3, 1]
    assert {one for batch in asked for one in batch} == {uri(str(n).encode()) for n in range(7)}


def test_drafts_of_puts_that_died_are_removed_once_they_are_old(local, clock):
    local.put(b"named")
    dead, alive = (os.path.join(local.folder, "drafts", name) for name in ("dead", "alive"))
    for path, written_s in ((dead, clock()), (alive, clock() + 2)):
        with open(path, "wb") as file:
            file.write(b"half of")
        os.utime(path, (written_s, written_s))
    clock.advance(DAY_S + 1)
    assert collect(local, named(b"named")) == (1, 7)
    assert drafts(local) == ["alive"]


def test_what_goes_away_by_itself_meanwhile_is_no_error(local, clock, monkeypatch):
    local.put(b"this")
    clock.advance(DAY_S)

    def gone(_uris):
        os.unlink(path_of(local, b"this"))
        return set()

    assert collect(local, gone) == (0, 0)


def test_a_dry_run_counts_what_would_go_and_removes_nothing(place, clock):
    place.put(b"named")
    place.put(b"nobody's")
    clock.advance(DAY_S)
    assert collect(place, named(b"named"), dry_run=True) == (1, 8)
    assert place.exists(uri(b"nobody's"))
    assert collect(place, named(b"named")) == (1, 8)
