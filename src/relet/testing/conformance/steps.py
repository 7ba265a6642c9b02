"""steps, by `lease.run()`: a call whose result a later holder reads in place of calling again."""

from __future__ import annotations

from typing import Any

import pytest

from relet.core.errors import Conflict, Invalid, LeaseLost, LeaseStopped, Parked
from relet.core.model import State
from relet.testing.conformance.evidence import refused, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import causes, expire, held, parked, ready, taken


class Calls:
    """A function that notes what it was called with."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def search(self, topic: str, *more: Any) -> dict[str, Any]:
        """Something that took long."""
        self.made.append((topic, *more))
        return {"found": topic, "n": len(self.made)}


def test_a_step_is_called_once_whoever_holds_the_task(route: Route) -> None:
    calls = Calls()
    first = held(route)
    with first.run() as run:
        assert run.step("search", calls.search, "grain") == {"found": "grain", "n": 1}
        first.release()
    second = taken(route, by=route.other)
    with second.run() as run:
        assert run.step("search", calls.search, "grain") == {"found": "grain", "n": 1}
        assert run.step("search", calls.search, "rye") == {"found": "rye", "n": 2}
        second.complete("done")
    assert calls.made == [("grain",), ("rye",)]
    shown = [(step.name, step.n, step.key, step.token, step.value["found"]) for step in route.db.steps("t")]
    assert shown == [("search", 1, None, first.token, "grain"), ("search", 2, None, second.token, "rye")]
    assert causes(route).count("stepped") == 2


def test_a_key_tells_calls_of_one_name_apart_in_whatever_order(route: Route) -> None:
    calls = Calls()
    lease = held(route)
    with lease.run() as run:
        run.step("page", calls.search, "1", key="1")
        run.step("page", calls.search, "2", key="2")
        lease.release()
    lease = taken(route)
    with lease.run() as run:
        assert run.step("page", calls.search, "2", key="2")["found"] == "2"
        assert run.step("page", calls.search, "1", key="1")["found"] == "1"
        lease.release()
    assert len(calls.made) == 2
    assert [step.key for step in route.db.steps("t")] == ["1", "2"]


def test_a_step_reused_for_other_arguments_is_refused_and_nothing_changed(route: Route) -> None:
    calls = Calls()
    lease = held(route)
    with lease.run() as run:
        run.step("search", calls.search, "grain")
        lease.release()
    lease = taken(route)
    with lease.run() as run:
        with refused(route, Conflict, field="name", name="search") as caught:
            run.step("search", calls.search, "rye")
        lease.release()
    assert caught.value.code == "RELET-STEP-CHANGED"
    assert "another name or a key=" in str(caught.value)
    assert calls.made == [("grain",)]


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, b"raw", "a\x00b", {"a": "\ud800"}], ids=str)
def test_a_result_that_has_no_json_form_is_refused_by_its_path(route: Route, value: Any) -> None:
    lease = held(route)
    with lease.run() as run:
        with refused(route, Invalid) as caught:
            run.step("search", lambda: value)
        assert str(caught.value).startswith("result of step 'search'")
        assert run.step("search", lambda: "mended") == "mended", "the lease is held, and the step may be made"
        lease.complete("done")


def test_a_result_comes_back_the_same_the_first_time_as_ever_after(route: Route) -> None:
    lease = held(route)
    with lease.run() as run:
        first = run.step("pages", lambda: (1, 2))
        lease.release()
    lease = taken(route)
    with lease.run() as run:
        assert run.step("pages", lambda: (1, 2)) == first == [1, 2]
        lease.release()


def test_a_large_result_is_kept_beside_the_store(route: Route) -> None:
    large = "x" * 300_000
    lease = held(route)
    with lease.run() as run:
        assert run.step("page", lambda: large) == large
        lease.release()
    assert max(len(row["value"]) for row in route.rows()["steps"]) < 200
    assert route.db.steps("t")[0].value == large
    lease = taken(route, by=route.other)
    with lease.run() as run:
        assert run.step("page", lambda: "not called") == large
        lease.release()


def test_what_it_took_is_what_the_next_holder_saves(route: Route) -> None:
    lease = held(route)
    with lease.run() as run:

        def search() -> int:
            run.spent(0.25)
            return 3

        run.step("search", search)
        lease.release()
    assert route.db.steps("t")[0].cost == 0.25
    taken(route)
    saved = route.db.history("t")[-1].detail["saved"]
    assert (saved["steps"], saved["cost"]) == (1, 0.25)


def test_a_lost_holder_keeps_no_step(route: Route) -> None:
    first = held(route)
    with pytest.raises((LeaseLost, LeaseStopped)), first.run() as run:
        late_step(route, run, first)
    assert route.db.steps("t") == []


def late_step(route: Route, run: Any, lease: Any) -> None:
    """A call in the middle of which the lease lapses."""

    def slow() -> str:
        expire(route, lease)
        return "late"

    run.step("search", slow)


def test_a_wait_unwinds_the_run_and_the_next_one_goes_on_from_its_first_line(route: Route) -> None:
    calls = Calls()
    lease = held(route)
    with lease.run() as run:
        run.step("search", calls.search, "grain")
        run.approval("publish", ask={"draft": 1})
        calls.made.append("nothing is run after it")
    assert isinstance(run.parked, Parked)
    assert route.db.task("t").state is State.WAITING
    route.db.decide("t", "publish", "accept", by="ann")
    lease = taken(route, by=route.other)
    with lease.run() as run:
        run.step("search", calls.search, "grain")
        assert run.approval("publish", ask={"draft": 1}).by == "ann"
        lease.complete("done")
    assert calls.made == [("grain",)]


def test_a_changed_question_is_asked_anew(route: Route) -> None:
    lease = held(route)
    with lease.run() as run:
        run.approval("publish", ask={"draft": 1})
    route.db.decide("t", "publish", "accept")
    lease = taken(route)
    with lease.run() as run:
        run.approval("publish", ask={"draft": 2})
    assert [(wait.n, wait.ask["draft"], wait.open) for wait in route.db.waits("t")] == [(1, 1, False), (1, 2, True)]
    route.db.decide("t", "publish", "deny")
    found = taken(route).answer("publish")
    assert found is not None
    assert found.kind == "deny", "the one that was asked last"


def test_sleep_and_receive_wait_without_a_lease(route: Route) -> None:
    lease = held(route)
    with lease.run() as run:
        run.sleep("1h")
    assert route.db.claim("reports") is None
    route.clock.advance("1h")
    lease = taken(route)
    with lease.run() as run:
        run.sleep("1h")
        run.receive("go")
    route.db.signal("t", "go", {"x": 1})
    lease = taken(route)
    with lease.run() as run:
        run.sleep("1h")
        assert run.receive("go") == {"x": 1}
        lease.complete("done")


def test_a_child_is_submitted_once_however_often_its_parent_runs(route: Route) -> None:
    lease = held(route)
    with lease.run() as run:
        child = run.submit("c1", "children", {"a": 1}, priority=3)
        assert (child.id, child.queue, child.created, child.priority) == ("t.c1", "children", True, 3)
        lease.release()
    lease = taken(route)
    with lease.run() as run:
        with unchanged(route):
            again = run.submit("c1", "children", {"a": 1}, priority=3)
        assert (again.id, again.created) == ("t.c1", False)
        with refused(route, Conflict, field="id"):
            run.submit("c1", "children", {"a": 2})
        lease.release()


def test_a_lost_parent_submits_no_child(route: Route) -> None:
    lease = held(route)
    with pytest.raises((LeaseLost, LeaseStopped)), lease.run() as run:
        expire(route, lease)
        run.submit("c1", "children", {"a": 1})
    assert [task.id for task in route.db.tasks()] == ["t"]


def test_progress_is_seen_by_everybody_and_is_no_event(route: Route) -> None:
    lease = held(route)
    with lease.run() as run:
        for n in range(1, 101):
            run.progress(f"{n} of 100")
        lease.fail("no", delay=0)
    assert route.other.task("t").progress == "100 of 100"
    assert causes(route) == ["submitted", "claimed", "retried"]


def test_steps_of_a_parked_or_unknown_task(route: Route) -> None:
    parked(route)
    ready(route, "none")
    assert route.db.steps("t") == route.db.steps("none") == []
