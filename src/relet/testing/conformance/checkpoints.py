"""checkpoints: the last few versions of each name, for everybody to look at."""

from __future__ import annotations

import pytest

from relet.core import limits
from relet.core.errors import NotFound
from relet.testing.conformance.evidence import unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import expire, held, taken

KEPT = limits.CHECKPOINTS_KEPT


def test_versions_of_each_name_are_shown_newest_first_with_the_token_that_wrote_them(route: Route) -> None:
    first = held(route)
    first.save({"page": 1})
    first.save("plan", name="plan")
    expire(route, first)
    second = taken(route, by=route.other)
    second.save({"page": 2})
    with unchanged(route):
        shown = route.other.checkpoints("t")
    assert [(one.name, one.version, one.value, one.token) for one in shown] == [
        ("main", 2, {"page": 2}, second.token),
        ("main", 1, {"page": 1}, first.token),
        ("plan", 1, "plan", first.token),
    ]  # fmt: skip
    assert [one.value for one in route.db.checkpoints("t", "plan")] == ["plan"]
    assert route.db.checkpoints("t", "never") == []


def test_the_last_few_are_kept_and_the_newest_always(route: Route) -> None:
    lease = held(route)
    for n in range(1, KEPT + 4):
        assert lease.save(n) == n
    assert [one.version for one in route.db.checkpoints("t")] == list(range(KEPT + 3, 3, -1))
    assert lease.load() == KEPT + 3


def test_a_large_checkpoint_is_kept_beside_the_store(route: Route) -> None:
    large = {"page": "x" * 300_000}
    lease = held(route)
    lease.save(large)
    assert route.db.checkpoints("t")[0].value == lease.load() == large
    assert max(len(row["value"]) for row in route.rows()["checkpoints"]) < 200
    expire(route, lease)
    assert taken(route, by=route.other).load() == large


def test_a_value_that_looks_like_the_address_of_a_file_in_part_is_a_value(route: Route) -> None:
    lease = held(route)
    for value in ({"relet:artifact": 5, "size": 3}, {"a": 1, "relet:artifact": "x"}, {"relet:artifact": None}):
        lease.save(value)
        assert lease.load() == value
        assert route.db.checkpoints("t")[0].value == value


def test_they_outlive_the_end_of_the_task(route: Route) -> None:
    lease = held(route)
    lease.save("kept")
    lease.complete("done")
    assert route.db.checkpoints("t")[0].value == "kept"


def test_a_task_that_nobody_knows_or_of_another_tenant_shows_none(route: Route) -> None:
    held(route).save(1)
    with pytest.raises(NotFound):
        route.db.checkpoints("nobody")
    with pytest.raises(NotFound):
        route.stranger.checkpoints("t")
