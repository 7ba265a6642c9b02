"""What does not fit a verb of durable work is refused by name, with the way out, and nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from relet.client.durable.contracts import Conditional, Declared, Keyed, Opaque, Queryable, declared
from relet.core import limits
from relet.core.errors import Conflict, Invalid, NotFound
from relet.testing.conformance.bad_input import LONE, LONG, NUL, Call
from relet.testing.conformance.bad_payload import UNFIT
from relet.testing.conformance.evidence import refused
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import held, parked, ready

CALLS: Final[dict[str, tuple[str, str, Call]]] = {
    "name of a question": ("name", "1 to 200", lambda _, lease: lease.park("")),
    "name that is a number": ("name", "not text", lambda _, lease: lease.park(7)),
    "name that is too long": ("name", "1 to 200", lambda _, lease: lease.park(LONG)),
    "name with NUL": ("name", "leave it out", lambda _, lease: lease.park(NUL)),
    "name with a lone surrogate": ("name", "leave it out", lambda _, lease: lease.park(LONE)),
    "kind of a wait": ("kind", "approval, signal, timer", lambda _, lease: lease.park("go", "question")),
    "kind that is none of the user's": (
        "kind", "approval, signal, timer", lambda _, lease: lease.park("go", "reconcile"),
    ),
    "kind that is no text": ("kind", "approval, signal, timer", lambda _, lease: lease.park("go", 7)),
    "kind that is a list": ("kind", "approval, signal, timer", lambda _, lease: lease.park("go", ["approval"])),
    "timeout of a wait": ("timeout", "outside 0ms", lambda _, lease: lease.park("go", timeout=-1)),
    "timeout beyond the limit": ("timeout", "3650d", lambda _, lease: lease.park("go", timeout="3651d")),
    "timeout that is no duration": ("timeout", '"90s"', lambda _, lease: lease.park("go", timeout="soon")),
    "timeout that is NaN": (
        "timeout", "not a finite number", lambda _, lease: lease.park("go", timeout=float("nan")),
    ),
    "timer without a time": ("timeout", "is missing", lambda _, lease: lease.park("go", "timer")),
    "default without timeout": ("default", "goes with timeout", lambda _, lease: lease.park("go", default="deny")),
    "default that is no decision": (
        "default", "there are accept", lambda _, lease: lease.park("go", timeout=1, default="no"),
    ),
    "default that is a number": (
        "default", "there are accept", lambda _, lease: lease.park("go", timeout=1, default=7),
    ),
    "default of an unknown shape": (
        "default", "is no decision", lambda _, lease: lease.park("go", timeout=1, default={"kind": "deny", "x": 1}),
    ),
    "default without its kind": (
        "default", "is no decision", lambda _, lease: lease.park("go", timeout=1, default={}),
    ),
    "default of a timeout": (
        "default", "there are accept", lambda _, lease: lease.park("go", timeout=1, default="timeout"),
    ),
    "edit as default without its value": (
        "default", "carries a value", lambda _, lease: lease.park("go", timeout=1, default="edit"),
    ),
    "default of a timer": (
        "default", "is no decision", lambda _, lease: lease.park("go", "timer", timeout=1, default="deny"),
    ),
    "name of an answer": ("name", "not text", lambda _, lease: lease.answer(7)),
    "task of a decision": ("task_id", "not text", lambda db, _: db.decide(7, "go", "accept")),
    "name of a decision": ("name", "1 to 200", lambda db, _: db.decide("t", "", "accept")),
    "kind of a decision": ("kind", "accept, edit, respond", lambda db, _: db.decide("t", "go", "yes")),
    "kind that only time has": ("kind", "accept, edit, respond", lambda db, _: db.decide("t", "go", "timeout")),
    "kind that only a signal has": ("kind", "accept, edit, respond", lambda db, _: db.decide("t", "go", "signal")),
    "edit without its value": ("value", "carries a value", lambda db, _: db.decide("t", "go", "edit")),
    "respond without its value": ("value", "carries a value", lambda db, _: db.decide("t", "go", "respond")),
    "who decides": ("by", "1 to 200", lambda db, _: db.decide("t", "go", "accept", by="")),
    "who decides with NUL": ("by", "leave it out", lambda db, _: db.decide("t", "go", "accept", by=NUL)),
    "digest of a decision": ("digest", "not text", lambda db, _: db.decide("t", "go", "accept", digest=7)),
    "task of a signal": ("task_id", "1 to 200", lambda db, _: db.signal(LONG, "go")),
    "name of a signal": ("name", "leave it out", lambda db, _: db.signal("t", LONE)),
    "effect to reconcile": ("effect_id", "not text", lambda db, _: db.reconcile(None, "applied")),
    "outcome": ("outcome", "applied, not_applied", lambda db, _: db.reconcile("e", "perhaps")),
    "outcome that tells nothing": ("outcome", "applied, not_applied", lambda db, _: db.reconcile("e", "unknown")),
    "receipt of what was not applied": (
        "receipt", "goes with applied", lambda db, _: db.reconcile("e", "not_applied", 1),
    ),
    "who reconciles": ("by", "not text", lambda db, _: db.reconcile("e", "applied", by=7)),
    "state of effects": ("state", "started, unknown", lambda db, _: db.effects(state="open")),
    "task of effects": ("task_id", "not text", lambda db, _: db.effects(task_id=7)),
    "page of effects": ("limit", "1 to 1000", lambda db, _: db.effects(limit=0)),
    "effects after a number": ("after", "not text", lambda db, _: db.effects(after=7)),
    "task of waits": ("task_id", "not text", lambda db, _: db.waits(7)),
    "queue of waits": ("queue", "1 to 200", lambda db, _: db.waits(queue="")),
    "task of steps": ("id", "not text", lambda db, _: db.steps(7)),
    "task of checkpoints": ("id", "1 to 200", lambda db, _: db.checkpoints("")),
    "name of checkpoints": ("name", "not text", lambda db, _: db.checkpoints("t", 7)),
    "task of artifacts": ("id", "leave it out", lambda db, _: db.artifacts(NUL)),
    "name of an artifact": ("name", "1 to 200", lambda _, lease: lease.attach("", b"x")),
    "name with a path": ("name", "holds a path", lambda _, lease: lease.attach("a/b.png", b"x")),
    "name with a path of Windows": ("name", "holds a path", lambda _, lease: lease.attach("a\\b.png", b"x")),
    "name that leads upwards": ("name", "holds a path", lambda _, lease: lease.attach("..", b"x")),
    "name of this folder": ("name", "holds a path", lambda _, lease: lease.attach(".", b"x")),
    "name of an artifact with NUL": ("name", "leave it out", lambda _, lease: lease.attach(NUL, b"x")),
    "name of an artifact to open": ("name", "holds a path", lambda _, lease: lease.open("../../etc/passwd")),
}  # fmt: skip


@pytest.mark.parametrize("case", CALLS)
def test_a_call_of_durable_work_with_an_argument_that_does_not_fit_is_refused(route: Route, case: str) -> None:
    field, told, call = CALLS[case]
    lease = held(route)
    with refused(route, Invalid, field=field) as caught:
        call(route.db, lease)
    assert str(caught.value).startswith(f"{field}: ")
    assert told in str(caught.value)
    assert caught.value.code == "RELET-INVALID"
    assert lease.renew() == 60


VERBS: Final[dict[str, tuple[str, Callable[[Any, Any, Any], object]]]] = {
    "park": ("ask", lambda _, lease, value: lease.park("other", ask=value)),
    "default of a signal": (
        "default", lambda _, lease, value: lease.park("other", "signal", timeout=1, default=value),
    ),
    "default of a decision": (
        "default", lambda _, lease, value: lease.park("other", timeout=1, default={"kind": "edit", "value": value}),
    ),
    "decide": ("value", lambda db, _, value: db.decide("waits", "publish", "edit", value)),
    "signal": ("payload", lambda db, _, value: db.signal("waits", "go", value)),
    "reconcile": ("receipt", lambda db, _, value: db.reconcile("e", "applied", value)),
}  # fmt: skip
SOME: Final = (
    "NaN nested",
    "NUL nested",
    "lone surrogate",
    "key that is a number",
    "bytes",
    "a megabyte",
    "too deep",
)


@pytest.mark.parametrize("case", SOME)
@pytest.mark.parametrize("verb", VERBS)
def test_a_value_of_durable_work_that_cannot_be_kept_is_refused_by_its_path(
    route: Route, verb: str, case: str
) -> None:
    field, call = VERBS[verb]
    value, path, told = UNFIT[case]
    parked(route, id="waits")
    lease = held(route)
    with refused(route, Invalid) as caught:
        call(route.db, lease, value)
    assert caught.value.detail["field"] == f"{field}{path}"
    assert told in str(caught.value)
    assert lease.renew() == 60


def test_a_value_in_the_shape_of_a_kept_file_is_refused_wherever_it_is_handed_in(route: Route) -> None:
    value = {"relet:artifact": "0" * 64, "size": 3}
    parked(route, id="waits")
    lease = held(route)
    for field, call in VERBS.values():
        with refused(route, Invalid, field=field) as caught:
            call(route.db, lease, value)
        assert "name it otherwise" in str(caught.value)


OF_A_RUN: Final[dict[str, tuple[str, str, Callable[[Any], object]]]] = {
    "name of a step": ("name", "1 to 200", lambda run: run.step("", len, "a")),
    "function of a step": ("fn", "no function", lambda run: run.step("search", 7)),
    "key of a step": ("key", "not text", lambda run: run.step("search", len, "a", key=7)),
    "timeout of a step": ("timeout", "outside 1ms", lambda run: run.step("search", len, "a", timeout=0)),
    "retry of a step": ("retry", "RetryPolicy", lambda run: run.step("search", len, "a", retry=3)),
    "name of an effect": ("name", "leave it out", lambda run: run.effect(NUL, 1, print)),
    "function of an effect": ("fn", "no function", lambda run: run.effect("pay", 1, "pay")),
    "key of an effect": ("key", "1 to 200", lambda run: run.effect("pay", 1, print, key="")),
    "timeout of an effect": ("timeout", "outside 1ms", lambda run: run.effect("pay", 1, print, timeout=0)),
    "contract that is none": ("contract", "relet.Keyed", lambda run: run.effect("pay", 1, print, contract="keyed")),
    "contract of another kind": ("contract", "relet.Keyed", lambda run: run.effect("pay", 1, print, contract=Keyed)),
    "payload of an effect": ("payload.a", "no JSON form", lambda run: run.effect("pay", {"a": float("nan")}, print)),
    "duration of a sleep": ("duration", "outside 0ms", lambda run: run.sleep(-1)),
    "duration that is text": ("duration", '"90s"', lambda run: run.sleep("soon")),
    "name of a sleep": ("name", "not text", lambda run: run.sleep(1, name=7)),
    "name of an approval": ("name", "1 to 200", lambda run: run.approval("")),
    "ask of an approval": ("ask", "as text", lambda run: run.approval("publish", ask=2**63)),
    "name of a signal": ("name", "not text", lambda run: run.receive(None)),
    "name of a child": ("name", "1 to 200", lambda run: run.submit("", "children", 1)),
    "queue of a child": ("queue", "not text", lambda run: run.submit("c", 7, 1)),
    "input of a child": ("input", "as text", lambda run: run.submit("c", "children", 2**63)),
    "ttl of a child": ("ttl", "100ms to 1d", lambda run: run.submit("c", "children", 1, ttl=0)),
}


@pytest.mark.parametrize("case", OF_A_RUN)
def test_a_call_of_a_run_with_an_argument_that_does_not_fit_is_refused(route: Route, case: str) -> None:
    field, told, call = OF_A_RUN[case]
    lease = held(route)
    with lease.run() as run:
        with refused(route, Invalid, field=field) as caught:
            call(run)
        lease.release()
    assert str(caught.value).startswith(f"{field}: ")
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("retention", lambda: Keyed(0)),
        ("retention", lambda: Keyed("soon")),
        ("retention", lambda: Keyed(float("nan"))),
        ("check", lambda: untyped(Opaque)(check=7)),
        ("check", lambda: untyped(Conditional)(check="look")),
        ("check", lambda: untyped(Queryable)(None)),
        ("visibility_delay", lambda: Queryable(print, visibility_delay=-1)),
        ("max_in_flight", lambda: Queryable(print, max_in_flight="soon")),
        ("contract", lambda: held_contract(Declared())),
    ],
    ids=["no time", "text", "NaN", "number", "name", "nothing", "past", "no duration", "root"],
)  # fmt: skip
def test_a_contract_that_says_nothing_sensible_is_refused_when_it_is_made(
    route: Route, field: str, make: Callable[[], object]
) -> None:
    with refused(route, Invalid, field=field):
        make()


def untyped(contract: Any) -> Any:
    """A contract that a checker of types knows nothing of."""
    return contract


def held_contract(given: Any) -> object:
    """As an effect takes it."""
    return declared(given)


def test_the_secret_of_another_lease_opens_nothing(route: Route) -> None:
    kind, token, _secret, task = held(route, "t").handle.split(".")
    secret = held(route, "u").handle.split(".")[2]
    with refused(route, NotFound, field="handle"):
        route.db.lease(f"{kind}.{token}.{secret}.{task}")


def test_a_page_of_effects_after_one_that_nobody_knows_is_refused(route: Route) -> None:
    with refused(route, NotFound, field="after"):
        route.db.effects(after="e-none")


def test_the_longest_names_and_times_fit(route: Route) -> None:
    name = "x" * 200
    lease = held(route, name, queue="long")
    assert lease.attach(name, b"x").name == name
    with lease.run() as run:
        assert run.step(name, len, "a", key=name) == 1
        child = run.submit(name, "children", 1)
        assert len(child.id) == limits.ID_CHARS_MAX
        assert run.submit("another", "children", 1).id != child.id
        assert run.effect(name, 1, lambda _, effect: effect.attempt, key=name) == 1
        lease.park(name, timeout=limits.DURATION_MS_MAX / 1_000, default={"kind": "respond", "value": name})
    assert route.db.decide(name, name, "accept", by=name).name == name
    assert route.db.signal(name, name, name).kept == 1


def test_a_decision_for_a_task_that_was_never_parked_says_what_to_look_at(route: Route) -> None:
    ready(route)
    with refused(route, Conflict, field="name") as caught:
        route.db.decide("t", "publish", "accept")
    assert "relet show t" in str(caught.value)
