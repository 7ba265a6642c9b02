"""save and load: what one holder finished, the next one reads."""

from __future__ import annotations

from typing import Any

import pytest

from relet.core.model import LostReason, State
from relet.testing.conformance.evidence import lost, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import causes, expire, held, left_ms, ready, taken


def test_a_saved_value_is_read_back_and_its_versions_counted(route: Route) -> None:
    lease = held(route)
    assert [lease.save({"page": n}) for n in range(3)] == [1, 2, 3]
    assert lease.load() == {"page": 2}


def test_nothing_saved_reads_as_none(route: Route) -> None:
    lease = held(route)
    with unchanged(route):
        assert lease.load() is None
        assert lease.load("other") is None


def test_names_are_kept_apart(route: Route) -> None:
    lease = held(route)
    lease.save(1)
    assert lease.save(2, name="plan") == 1
    assert lease.save(3, "plan") == 2
    assert (lease.load(), lease.load("main"), lease.load("plan")) == (1, 1, 3)


@pytest.mark.parametrize(
    "value", [None, False, 0, 2**63 - 1, -0.5, "", "漢字 🌾", [], {}, {"a": [{"b": [1, "two"]}]}]
)
def test_any_json_value_comes_back_equal(route: Route, value: Any) -> None:
    lease = held(route)
    lease.save(value)
    found = lease.load()
    assert found == value
    assert type(found) is type(value)


def test_the_next_holder_reads_what_the_lost_one_saved(route: Route) -> None:
    first = held(route)
    first.save({"page": 7})
    first.save(["a"], name="done")
    expire(route, first)
    second = taken(route, by=route.other)
    assert second.load() == {"page": 7}
    assert second.load("done") == ["a"]
    assert second.save({"page": 8}) == 2


def test_holders_that_saved_nothing_lose_nothing(route: Route) -> None:
    ready(route, max_attempts=9, max_losses=9)
    first = taken(route)
    first.save("kept")
    expire(route, first)
    for _ in range(3):
        expire(route, taken(route))
        assert route.db.sweep() == 1
        route.clock.advance("1h")
    assert taken(route).load() == "kept"


def test_a_checkpoint_outlives_failure_and_requeue(route: Route) -> None:
    lease = held(route)
    lease.save("kept")
    lease.fail("no", retry=False)
    route.db.requeue("t")
    assert taken(route).load() == "kept"


@pytest.mark.case("CK-09")
def test_a_late_save_does_not_reach_the_next_holder(route: Route) -> None:
    first = held(route)
    first.save("first")
    expire(route, first)
    second = taken(route)
    with lost(route, LostReason.SUPERSEDED):
        first.save("late")
    assert second.load() == "first"
    second.save("second")
    with lost(route, LostReason.SUPERSEDED):
        first.save("later")
    assert second.load() == "second"


def test_tasks_with_equal_input_share_no_checkpoint(route: Route) -> None:
    route.db.submit_many("reports", [{"topic": "x"}] * 2)
    one, two = route.db.claim_many("reports", 2)
    one.save("mine")
    assert two.load() is None


def test_a_save_is_no_heartbeat(route: Route) -> None:
    lease = held(route)
    route.clock.advance(20)
    lease.save(1)
    assert left_ms(route) == 40_000


def test_a_save_starts_the_count_of_losses_in_a_row_anew(route: Route) -> None:
    ready(route, max_losses=2, max_attempts=99)
    for _ in range(4):
        lease = taken(route)
        lease.save("a little further")
        expire(route, lease)
        assert route.db.sweep() == 1
        assert route.db.task("t").state is State.READY
        route.clock.advance("1h")
    assert route.db.task("t").losses == 4
    expire(route, taken(route))
    assert route.db.sweep() == 1
    assert (route.db.task("t").state, route.db.task("t").reason) == (State.FAILED, "losses")


def test_every_save_is_one_event_with_its_name_and_version(route: Route) -> None:
    lease = held(route)
    lease.save(1)
    lease.save(2, name="plan")
    lease.save(3)
    assert causes(route) == ["submitted", "claimed", "saved", "saved", "saved"]
    details = [event.detail for event in route.db.history("t")[2:]]
    assert [(detail["name"], detail["version"]) for detail in details] == [("main", 1), ("plan", 1), ("main", 2)]


def test_a_lost_holder_may_still_read(route: Route) -> None:
    lease = held(route)
    lease.save("kept")
    expire(route, lease)
    with unchanged(route):
        assert lease.load() == "kept"
