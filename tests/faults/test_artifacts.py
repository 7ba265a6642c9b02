"""Puts killed a hundred times at random moments, and raced against collections for long."""

import random

import pytest

from tests.artifacts.killed import kill_while_putting, put_against_collect

pytestmark = pytest.mark.faults


def test_ck_02_artifacts_are_whole_after_100_kills_at_random_moments(start, tmp_path):
    seed = random.randrange(1 << 32)
    rounds = [kill_while_putting(start, tmp_path / str(n), seed + n, rounds=10) for n in range(10)]
    assert sum(len(told) for told, _ in rounds) >= 100
    assert sum(left for _, left in rounds) > 0, "else no kill came in the middle of a put"


def test_a_collection_takes_nothing_that_is_put_and_named_in_3000_rounds(start, tmp_path):
    removed, lost = put_against_collect(start, tmp_path / "artifacts", tmp_path / "names", rounds=3000)
    assert (lost, removed > 100) == (0, True)
