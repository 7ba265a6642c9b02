"""What a refusal must leave behind: nothing, or the lapse that it observed and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from relet.core.errors import Error, LeaseLost
from relet.core.model import LostReason
from relet.testing.conformance.route import Route, Row, Rows

E = TypeVar("E", bound=Error)

OF_AN_END = {"ended", "ended_ms", "ended_wall_ms"}
"""What a lapse writes into the lease."""
OF_A_LOSS = {
    "state", "delayed", "due_ms", "due_wall_ms", "attempt", "losses", "streak", "cancel_reason", "error", "code",
    "reason", "updated_wall_ms", "last_event",
}  # fmt: skip
"""What a lapse may write into the task; never its result, its token or its deadline."""


@contextmanager
def unchanged(route: Route) -> Iterator[None]:
    """Nothing that the store keeps is other afterwards than it was before."""
    before = route.rows()
    yield
    assert told(route.rows()) == told(before)


def told(rows: Rows) -> Rows:
    """Rows without the note of when a sweep should look at a lease next, which any claim may move on."""
    leases = [{column: value for column, value in row.items() if column != "check_ms"} for row in rows["leases"]]
    return {**rows, "leases": leases}


@contextmanager
def refused(route: Route, error: type[E], /, **detail: Any) -> Iterator[pytest.ExceptionInfo[E]]:
    """The block is refused, with these facts, and has changed nothing."""
    before = route.rows()
    with pytest.raises(error) as caught:
        yield caught
    assert {key: caught.value.detail.get(key) for key in detail} == detail
    assert route.rows() == before


@contextmanager
def lost(route: Route, reason: LostReason, **detail: Any) -> Iterator[pytest.ExceptionInfo[LeaseLost]]:
    """The block is refused because the lease is lost for this reason, and has changed nothing."""
    with refused(route, LeaseLost, reason=str(reason), **detail) as caught:
        yield caught


@contextmanager
def lost_by_lapse(
    route: Route, token: int, reason: LostReason = LostReason.EXPIRED
) -> Iterator[pytest.ExceptionInfo[LeaseLost]]:
    """The block is refused, and what has changed is that the expiry it observed was written down."""
    before = route.rows()
    with pytest.raises(LeaseLost) as caught:
        yield caught
    assert caught.value.reason is reason
    only_lapsed(before, route.rows(), token)


def only_lapsed(before: Rows, after: Rows, token: int) -> None:
    """Two readings differ by one lapse: its lease, its task, and one event."""
    assert after["checkpoints"] == before["checkpoints"]
    assert after["inputs"] == before["inputs"]
    (lease,) = changed(before["leases"], after["leases"])
    assert (lease["token"], lease["ended"]) == (token, "lapsed")
    assert differing(before["leases"], lease, "token") <= OF_AN_END
    (task,) = changed(before["tasks"], after["tasks"])
    assert task["seq"] == lease["task_seq"]
    assert differing(before["tasks"], task, "seq") <= OF_A_LOSS
    (event,) = changed(before["events"], after["events"])
    assert (event["token"], event["task_seq"]) == (token, task["seq"])
    assert event["kind"] in {"lapsed", "failed", "cancelled"}


def changed(before: list[Row], after: list[Row]) -> list[Row]:
    """Rows that are new, or other than they were."""
    return [row for row in after if row not in before]


def differing(before: list[Row], row: Row, key: str) -> set[str]:
    """The columns in which a row differs from what it was."""
    (old,) = (candidate for candidate in before if candidate[key] == row[key])
    return {column for column in row if row[column] != old[column]}
