"""What every verb of a holder has in common: strict expiry, token and secret, and refusals that change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest

from relet.client.blocking_lease import Lease
from relet.core import border
from relet.core.backend import Request
from relet.core.errors import Conflict, NotFound
from relet.core.model import Handle, LostReason
from relet.core.rules.complete import Complete, Completion
from relet.core.rules.fail import Fail
from relet.core.rules.inspect import Look
from relet.core.rules.release import Release
from relet.core.rules.renew import Renew
from relet.core.rules.save import Load, Save
from relet.testing.conformance.evidence import lost, lost_by_lapse, refused, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import TTL_S, expire, held, taken

VERBS: Final[dict[str, Callable[[Lease], Any]]] = {
    "renew": lambda lease: lease.renew(),
    "save": lambda lease: lease.save({"page": 2}),
    "complete": lambda lease: lease.complete("late"),
    "fail": lambda lease: lease.fail("late"),
    "release": lambda lease: lease.release(delay=7),
}


def superseded(route: Route) -> Lease:
    lease = held(route)
    expire(route, lease)
    taken(route, holder="B", by=route.other)
    return lease


def swept(route: Route) -> Lease:
    lease = held(route)
    expire(route, lease)
    assert route.other.sweep() == 1
    return lease


def released_and_taken_by_another(route: Route) -> Lease:
    lease = held(route)
    lease.release()
    taken(route, holder="B", by=route.other)
    return lease


def completed(route: Route) -> Lease:
    lease = held(route)
    lease.complete("first")
    return lease


def failed_and_taken_by_another(route: Route) -> Lease:
    lease = held(route)
    lease.fail("first", delay=0)
    taken(route, holder="B", by=route.other)
    return lease


def capped_and_swept(route: Route) -> Lease:
    lease = held(route, max_hold=60)
    expire(route, lease)
    assert route.other.sweep() == 1
    return lease


def cancelled_and_swept(route: Route) -> Lease:
    lease = held(route)
    route.other.cancel("t", "enough")
    expire(route, lease)
    assert route.other.sweep() == 1
    return lease


def cancelled_requeued_and_taken_by_another(route: Route) -> Lease:
    lease = cancelled_and_swept(route)
    route.other.requeue("t")
    taken(route, holder="B", by=route.other)
    return lease


LOSSES: Final[dict[Callable[[Route], Lease], LostReason]] = {
    superseded: LostReason.SUPERSEDED,
    swept: LostReason.EXPIRED,
    released_and_taken_by_another: LostReason.RELEASED,
    completed: LostReason.CLOSED,
    failed_and_taken_by_another: LostReason.CLOSED,
    capped_and_swept: LostReason.CAPPED,
    cancelled_and_swept: LostReason.CANCELLED,
    cancelled_requeued_and_taken_by_another: LostReason.CANCELLED,
}
"""Ways in which a lease is lost, each with the first reason that fits."""
OTHER_CONTENT: Final[set[tuple[str, Callable[[Route], Lease]]]] = {
    ("complete", completed),
    ("fail", failed_and_taken_by_another),
    ("release", released_and_taken_by_another),
}
"""The verb that ended the lease, with other content: a conflict, since one answer to it stands already."""


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
@pytest.mark.parametrize("verb", VERBS)
def test_a_lost_lease_is_refused_with_its_reason_and_changes_nothing(
    route: Route, verb: str, loss: Callable[[Route], Lease]
) -> None:
    lease = loss(route)
    if (verb, loss) in OTHER_CONTENT:
        with refused(route, Conflict, task_id="t", token=lease.token):
            VERBS[verb](lease)
        return
    current = route.db.task("t").token
    with lost(route, LOSSES[loss], token=lease.token, current_token=current) as caught:
        VERBS[verb](lease)
    assert "Nothing was written" in str(caught.value)
    with lost(route, LOSSES[loss]):
        VERBS[verb](route.other.lease(lease.handle))


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_taken_a_millisecond_before_the_expiry(route: Route, verb: str) -> None:
    lease = held(route)
    route.clock.advance(f"{TTL_S * 1_000 - 1}ms")
    VERBS[verb](lease)
    assert route.db.task("t").losses == 0


@pytest.mark.case("ZC-06")
@pytest.mark.parametrize("late", [0, 1, 3_600_000])
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_refused_from_the_very_instant_of_expiry_though_nobody_else_claimed(
    route: Route, verb: str, late: int
) -> None:
    lease = held(route)
    lease.save("kept")
    route.clock.advance(f"{TTL_S * 1_000 + late}ms")
    with lost_by_lapse(route, lease.token) as caught:
        VERBS[verb](lease)
    assert caught.value.detail["late_ms"] == late
    assert route.db.task("t").losses == 1
    assert taken(route).load() == "kept"


@pytest.mark.parametrize("verb", VERBS)
def test_a_holder_once_told_that_it_lost_is_never_accepted_again(route: Route, verb: str) -> None:
    lease = held(route)
    expire(route, lease)
    with lost_by_lapse(route, lease.token):
        VERBS[verb](lease)
    route.clock.step(-3_600)
    for again in VERBS:
        with lost(route, LostReason.EXPIRED):
            VERBS[again](lease)


@pytest.mark.parametrize("verb", VERBS)
def test_after_a_cancel_the_expiry_is_written_down_as_the_cancel(route: Route, verb: str) -> None:
    lease = held(route)
    route.other.cancel("t", "enough")
    expire(route, lease)
    with lost_by_lapse(route, lease.token, LostReason.CANCELLED):
        VERBS[verb](lease)
    task = route.db.task("t")
    assert (task.state, task.reason, task.losses) == ("cancelled", "enough", 0)


@pytest.mark.parametrize("verb", VERBS)
def test_a_refused_verb_leaves_the_next_holder_untouched(route: Route, verb: str) -> None:
    old = superseded(route)
    with lost(route, LostReason.SUPERSEDED):
        VERBS[verb](old)
    task = route.db.task("t")
    assert (task.holder, task.live, task.losses) == ("B", True, 1)


# -- proof: the token and its secret, and never the holder's name ----------------------------------------------------


def requests(handle: Handle) -> dict[str, Request]:
    """Every request that carries a handle."""
    value = msgspec.Raw(b"1")
    return {
        "renew": Renew(handles=[handle]),
        "save": Save(handle=handle, name="main", value=value),
        "load": Load(handle=handle, name="main"),
        "complete": Complete(completions=[Completion(handle=handle, result=value)]),
        "fail": Fail(handle=handle, error="no"),
        "release": Release(handle=handle),
        "look": Look(handle=handle),
    }


def answered(route: Route, ask: Request) -> Any:
    """The answer; an error that came as a value of a list is raised."""
    answer = route.call(ask)
    outcomes = answer.outcomes if hasattr(answer, "outcomes") else answer
    if isinstance(outcomes, list) and isinstance(outcomes[0], Exception):
        raise outcomes[0]
    return answer


def forged(lease: Lease, how: str, neighbour: Lease) -> Handle:
    """The handle of a lease, changed on the way."""
    handle, other = border.handle(lease.handle), border.handle(neighbour.handle)
    match how:
        case "no secret":
            return Handle(handle.task_id, handle.token, "")
        case "guessed secret":
            return Handle(handle.task_id, handle.token, "0" * len(handle.secret))
        case "secret of another lease":
            return Handle(handle.task_id, handle.token, other.secret)
        case "token of another lease":
            return Handle(handle.task_id, other.token, handle.secret)
        case "task of another lease":
            return Handle(other.task_id, handle.token, handle.secret)
        case _:
            return Handle(handle.task_id, handle.token + 10_000, handle.secret)


FORGERIES: Final = [
    "no secret",
    "guessed secret",
    "secret of another lease",
    "token of another lease",
    "task of another lease",
    "future token",
]


@pytest.mark.case("CR-06", "CK-09")
@pytest.mark.parametrize("how", FORGERIES)
@pytest.mark.parametrize("verb", requests(Handle("", 0, "")))
def test_a_handle_that_was_never_given_out_proves_nothing(route: Route, verb: str, how: str) -> None:
    lease, neighbour = held(route, "t"), held(route, "u", holder="A")
    lease.save("mine")
    handle = forged(lease, how, neighbour)
    with refused(route, NotFound, field="handle", token=handle.token) as caught:
        answered(route, requests(handle)[verb])
    assert caught.value.code == "RELET-HANDLE"
    assert [lease.renew(), neighbour.renew()] == [TTL_S, TTL_S]


@pytest.mark.case("CR-03")
def test_a_claim_and_a_sweep_at_the_same_millisecond_leave_the_new_lease_alone(route: Route) -> None:
    lease = held(route)
    with unchanged(route):
        assert route.other.sweep() == 0
        assert route.other.claim("reports") is None
    assert lease.renew() == TTL_S
