"""result: the value, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from relet.core.errors import Invalid, TaskCancelled, TaskFailed
from relet.core.model import State
from relet.testing.conformance.evidence import refused, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import brought_to, held, in_background, ready, wear_out


@dataclass
class Report:
    pages: int
    title: str = "none"


class Page(msgspec.Struct):
    number: int


@pytest.mark.parametrize("state", [State.READY, State.LEASED, State.WAITING])
def test_there_is_no_result_before_the_task_is_finished(route: Route, state: State) -> None:
    brought_to(route, state)
    with unchanged(route), pytest.raises(TimeoutError, match="not finished"):
        route.db.result("t")
    with pytest.raises(TimeoutError):
        route.db.result("t", wait="20ms")


def test_a_result_may_be_none(route: Route) -> None:
    held(route).complete(None)
    assert route.db.result("t") is None


@pytest.mark.parametrize(
    ("stored", "returns", "wanted"),
    [
        ({"pages": 3}, Report, Report(3)),
        ([{"number": 1}], list[Page], [Page(1)]),
        ({"a": 1}, dict[str, int], {"a": 1}),
        (3, int, 3),
        (None, int | None, None),
        ("2030-01-02", str, "2030-01-02"),
    ],
)
def test_a_result_is_given_as_the_type_that_is_asked_for(
    route: Route, stored: Any, returns: Any, wanted: Any
) -> None:
    held(route).complete(stored)
    assert route.other.result("t", returns=returns) == wanted


def test_a_result_that_does_not_fit_the_type_is_refused_and_stays_readable(route: Route) -> None:
    held(route).complete({"pages": "three"})
    with refused(route, Invalid, field="returns") as caught:
        route.db.result("t", returns=Report)
    assert "pages" in str(caught.value)
    assert route.db.result("t") == {"pages": "three"}


def test_a_task_that_failed_raises_with_its_reason_and_error(route: Route) -> None:
    held(route).fail("wrong input", retry=False, code="BAD")
    with refused(route, TaskFailed, task_id="t", reason="permanent", error="wrong input", error_code="BAD") as caught:
        route.db.result("t", wait=10)
    assert "wrong input" in str(caught.value)


def test_a_task_that_was_cancelled_raises_with_its_reason(route: Route) -> None:
    ready(route)
    route.db.cancel("t", "not needed")
    with refused(route, TaskCancelled, task_id="t", reason="not needed"):
        route.db.result("t", wait=10)


def test_whoever_waits_gets_the_result_when_it_comes(route: Route) -> None:
    lease = held(route)
    waiting = in_background(lambda: route.other.result("t", wait=15))
    lease.complete("here")
    assert waiting() == "here"


def test_whoever_waits_learns_of_a_failure_when_it_comes(route: Route) -> None:
    lease = held(route)
    waiting = in_background(lambda: route.other.result("t", wait=15))
    lease.fail("no", retry=False)
    with pytest.raises(TaskFailed):
        waiting()


def test_a_requeued_task_forgets_that_it_failed(route: Route) -> None:
    wear_out(route)
    route.db.requeue("t")
    lease = route.db.claim("reports")
    assert lease is not None
    lease.complete("at last")
    assert route.db.result("t") == "at last"
