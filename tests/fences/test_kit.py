"""Every fence passes every check of the kit; and the kit finds what is no fence."""

import contextlib
from functools import partial

import pytest

from relet.testing.fence_kit import CHECKS, check_fence, proof
from tests.fences import broken
from tests.fences.subjects import make_table, on_apsw, on_files

pytestmark = pytest.mark.slow


@pytest.mark.case("LL-04")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_an_older_holder_never_writes_after_a_newer_one_has_raised_the_fence(proved, check):
    with proved.fresh():
        check(proved)


FAULTS = {
    broken.LooksFirst: "a_holder_stopped_inside_its_block_writes_nothing_after_a_raise",
    broken.Forgets: "a_raise_outlives_the_process_that_made_it",
    broken.RefusesEqual: "a_larger_and_an_equal_token_is_accepted_and_a_smaller_one_refused",
    broken.NeverRaises: "a_raise_alone_keeps_smaller_tokens_out",
    broken.WritesAtOnce: "an_exception_in_the_block_leaves_nothing",
    broken.OneForAll: "resources_do_not_disturb_each_other",
    broken.TakesAnything: "bad_tokens_and_bad_names_are_refused_and_named",
    broken.StaysLocked: "a_holder_killed_inside_its_block_leaves_nothing_and_blocks_nobody",
}


@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.__name__)
def test_the_kit_finds_a_fence_with_a_fault(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("relet.testing.fence_kit.PATIENCE_S", 1.0)
    (check,) = (one for one in CHECKS if one.__name__ == FAULTS[kind])
    with proof(partial(broken.on_broken, kind, tmp_path)) as proved, proved.fresh(), pytest.raises(AssertionError):
        check(proved)


def test_the_kit_finds_a_control_that_goes_through_the_fence(tmp_path):
    (check,) = (one for one in CHECKS if one.__name__.startswith("the_same_run_without"))
    opener = partial(broken.on_guarded_bare, tmp_path)
    with proof(opener) as proved, proved.fresh(), pytest.raises(AssertionError):
        check(proved)


def test_the_kit_finds_a_fence_that_says_it_holds_nothing_and_does(tmp_path):
    (check,) = (one for one in CHECKS if one.__name__.startswith("a_holder_stopped_inside"))
    make_table(tmp_path / "target.db")
    opener = partial(on_apsw, tmp_path / "target.db")
    with proof(opener, holds=False) as proved, proved.fresh(), pytest.raises(AssertionError):
        check(proved)


def test_check_fence_runs_them_all(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr("relet.testing.fence_kit.CHECKS", [lambda proof: ran.append(proof.resource)] * 3)
    check_fence(partial(on_files, tmp_path))
    assert len(set(ran)) == 3


@contextlib.contextmanager
def cannot_open():
    raise OSError("no such shelf")
    yield


def test_a_target_that_cannot_be_opened_says_why():
    with proof(cannot_open) as proved, pytest.raises(OSError, match="no such shelf"), proved.holders(1):
        pass
