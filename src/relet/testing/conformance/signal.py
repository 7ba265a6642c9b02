"""signal: a value for a task, taken by one that waits for it, else kept until one does."""

from __future__ import annotations

from typing import Any

import pytest

from relet.core import limits
from relet.core.errors import Conflict, NotFound
from relet.core.model import State
from relet.testing.conformance.evidence import refused
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import STATES, brought_to, causes, held, parked, ready, taken

FINISHED = [State.DONE, State.FAILED, State.CANCELLED]


def received(route: Route, name: str = "go") -> Any:
    """The payload that the next holder finds."""
    found = taken(route).answer(name)
    assert found is not None
    assert (found.kind, found.by) == ("signal", "signal")
    return found.value


@pytest.mark.parametrize("payload", [None, {"x": [1, "ü"]}])
def test_a_signal_ends_the_wait_for_it(route: Route, payload: Any) -> None:
    parked(route, "go", "signal")
    said = route.other.signal("t", "go", payload)
    assert (said.taken, said.kept) == (True, 0)
    assert received(route) == payload
    assert causes(route)[-2:] == ["answered", "claimed"]


@pytest.mark.parametrize("state", [state for state in STATES if state not in FINISHED])
def test_a_signal_that_nobody_waits_for_is_kept(route: Route, state: State) -> None:
    brought_to(route, state)
    said = route.db.signal("t", "go", 1)
    assert (said.taken, said.kept) == (False, 1)
    assert route.db.task("t").state is state
    assert causes(route)[-1] == "signalled"


def test_a_kept_signal_answers_the_wait_that_comes_and_each_answers_one(route: Route) -> None:
    lease = held(route)
    for n in range(3):
        route.db.signal("t", "go", n)
    for n in range(3):
        assert lease.park("go", "signal").state is State.READY
        lease = taken(route)
        found = lease.answer("go")
        assert found is not None
        assert (found.n, found.value) == (n + 1, n), "in the order in which they came"
    assert lease.park("go", "signal").state is State.WAITING


def test_names_are_kept_apart(route: Route) -> None:
    parked(route, "go", "signal")
    assert not route.db.signal("t", "stop", 1).taken
    assert route.db.task("t").state is State.WAITING
    assert route.db.signal("t", "go", 2).taken


@pytest.mark.parametrize("state", FINISHED)
def test_a_finished_task_takes_no_signal(route: Route, state: State) -> None:
    brought_to(route, state)
    with refused(route, Conflict, state=str(state)):
        route.db.signal("t", "go")


def test_a_task_that_nobody_knows_and_one_of_another_tenant_get_none(route: Route) -> None:
    ready(route)
    with refused(route, NotFound, field="task_id"):
        route.db.signal("nobody", "go")
    with refused(route, NotFound, field="task_id"):
        route.stranger.signal("t", "go")


def test_a_bounded_number_of_signals_is_kept(route: Route) -> None:
    ready(route)
    for n in range(limits.SIGNALS_KEPT):
        assert route.db.signal("t", "go", n).kept == n + 1
    with refused(route, Conflict, kept=limits.SIGNALS_KEPT) as caught:
        route.db.signal("t", "go")
    assert caught.value.code == "RELET-SIGNALS-FULL"
    assert str(limits.SIGNALS_KEPT) in str(caught.value)
    taken(route).park("go", "signal")
    assert route.db.signal("t", "go", "one more").kept == limits.SIGNALS_KEPT


def test_without_a_signal_in_time_the_default_is_what_came(route: Route) -> None:
    parked(route, "go", "signal", timeout=60, default={"nothing": True})
    route.clock.advance(60)
    found = taken(route).answer("go")
    assert found is not None
    assert (found.kind, found.value, found.by) == ("signal", {"nothing": True}, "timeout")


def test_a_signal_at_the_instant_of_the_timeout_is_kept_for_the_next_wait(route: Route) -> None:
    parked(route, "go", "signal", timeout=60)
    route.clock.advance(60)
    assert not route.db.signal("t", "go", "late").taken
    lease = taken(route)
    assert lease.park("go", "signal").state is State.READY
    assert received(route) == "late"
