"""cancel_many and requeue_many: everything that matches, page by page; a dry run only tells."""

from __future__ import annotations

import pytest

from relet.core.model import State
from relet.testing.conformance.evidence import unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import STATES, brought_to, held, ready, wear_out

MORE_THAN_A_PAGE = 1_203


def test_all_unfinished_tasks_that_match_are_cancelled(route: Route) -> None:
    for state in reversed(STATES):
        brought_to(route, state, str(state))
    ready(route, "other", queue="elsewhere")
    bulk = route.db.cancel_many(queue="reports", reason="over")
    assert sorted(bulk.ids) == ["leased", "ready", "waiting"]
    assert (bulk.count, len(bulk), bulk.dry_run) == (2, 2, False)
    states = {task.id: str(task.state) for task in route.db.tasks()}
    assert states["ready"] == "cancelled"
    assert states["leased"] == "leased"
    assert route.db.task("leased").cancel_requested
    assert (states["done"], states["failed"], states["other"]) == ("done", "failed", "ready")


def test_a_second_run_finds_nothing_left(route: Route) -> None:
    ready(route)
    held(route, "u", queue="elsewhere")
    assert route.db.cancel_many().count == 2
    with unchanged(route):
        assert route.db.cancel_many().ids == []


@pytest.mark.parametrize(
    ("conditions", "wanted"),
    [
        ({"queue": "a"}, ["1", "2"]),
        ({"kind": "k"}, ["2", "3"]),
        ({"queue": "a", "kind": "k"}, ["2"]),
        ({"labels": {"team": "x"}}, ["1", "3"]),
        ({"labels": {"team": "x", "day": "mon"}}, ["3"]),
        ({"labels": {"team": "nobody"}}, []),
        ({"state": "ready", "queue": "b"}, ["3"]),
        ({"state": "done"}, []),
        ({}, ["1", "2", "3"]),
    ],
    ids=str,
)
def test_every_condition_must_hold(route: Route, conditions: dict[str, object], wanted: list[str]) -> None:
    route.db.submit("a", id="1", labels={"team": "x"})
    route.db.submit("a", id="2", kind="k")
    route.db.submit("b", id="3", kind="k", labels={"team": "x", "day": "mon"})
    with unchanged(route):
        assert route.db.cancel_many(conditions, dry_run=True).ids == wanted
    assert route.db.cancel_many(**conditions).ids == wanted  # type: ignore[arg-type]


def test_a_dry_run_names_what_would_be_changed_and_changes_nothing(route: Route) -> None:
    wear_out(route, "dead")
    ready(route)
    with unchanged(route):
        bulk = route.db.cancel_many(dry_run=True)
        assert (bulk.ids, bulk.dry_run) == (["t"], True)
        assert route.db.requeue_many(dry_run=True).ids == ["dead"]


def test_more_than_a_page_is_worked_through_to_its_end(route: Route) -> None:
    route.db.submit_many("reports", range(MORE_THAN_A_PAGE))
    assert route.db.cancel_many(dry_run=True).count == MORE_THAN_A_PAGE
    assert route.db.cancel_many().count == MORE_THAN_A_PAGE
    assert route.db.stats().queues[0].cancelled == MORE_THAN_A_PAGE
    assert route.db.requeue_many(state="cancelled").count == MORE_THAN_A_PAGE
    assert route.db.stats().queues[0].ready == MORE_THAN_A_PAGE


def test_without_a_state_only_failed_tasks_are_requeued(route: Route) -> None:
    for state in reversed(STATES):
        brought_to(route, state, str(state))
    assert route.db.requeue_many().ids == ["failed"]
    assert route.db.task("cancelled").state is State.CANCELLED
    assert route.db.requeue_many(state="cancelled").ids == ["cancelled"]


@pytest.mark.parametrize("state", [State.READY, State.LEASED, State.DONE])
def test_what_is_not_dead_is_not_requeued_even_if_asked_for(route: Route, state: State) -> None:
    brought_to(route, state)
    with unchanged(route):
        assert route.db.requeue_many(state=state).ids == []


def test_requeued_tasks_are_as_after_a_single_requeue(route: Route) -> None:
    wear_out(route, "one")
    wear_out(route, "many")
    route.db.requeue("one")
    assert route.db.requeue_many().ids == ["many"]
    one, many = route.db.task("one"), route.db.task("many")
    assert [(t.state, t.attempt, t.failures, t.reason, t.due_at) for t in (one, many)] == [
        (State.READY, 2, 0, None, None)
    ] * 2
