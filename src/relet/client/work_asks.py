"""What callers say about durable work, as requests; parsed here once, for blocking and awaiting alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from relet.client.asks import page, task_id
from relet.client.files import raw
from relet.client.ids import new_call_id
from relet.core import border, limits
from relet.core.border import invalid, shown
from relet.core.model import Handle
from relet.core.payload import digest as digest_of
from relet.core.rules.answer import Fallback
from relet.core.rules.decide import Decide
from relet.core.rules.effect import wait_name
from relet.core.rules.inspect_work import Effects
from relet.core.rules.park import Park
from relet.core.rules.progress import Progress
from relet.core.rules.reconcile import Reconcile
from relet.core.rules.signal import Signal
from relet.core.rules.start_effect import Start, StartEffect
from relet.core.work import BY_PERSON, NEED_VALUE, Contract, DecisionKind, EffectState, Outcome, WaitKind

if TYPE_CHECKING:
    from enum import StrEnum


def park(handle: Handle, name: Any, kind: Any, ask: Any, timeout: Any, default: Any) -> Park:
    """A question, and what stands when nobody answers it in time."""
    kind = _one_of("kind", WaitKind, kind, WaitKind.APPROVAL, WaitKind.SIGNAL, WaitKind.TIMER)
    if kind is WaitKind.TIMER and timeout is None:
        raise invalid("timeout", "is missing; a timer ends by it and by nothing else")
    if default is not None and timeout is None:
        raise invalid("default", "goes with timeout: it stands when nobody answered in time")
    return Park(
        handle=handle, name=border.name("name", name), kind=kind, ask=raw("ask", ask),
        timeout_ms=border.maybe_duration_ms("timeout", timeout, most=limits.DURATION_MS_MAX),
        fallback=None if default is None else _fallback(kind, default),
    )  # fmt: skip


def _fallback(kind: WaitKind, default: Any) -> Fallback:
    if kind is WaitKind.SIGNAL:
        return Fallback(kind=DecisionKind.SIGNAL, value=raw("default", default))
    given = default if isinstance(default, Mapping) else {"kind": default}
    if kind is not WaitKind.APPROVAL or set(given) - {"kind", "value"} or "kind" not in given:
        raise invalid("default", f'{shown(default)} is no decision; give "deny", or {{"kind": "edit", "value": …}}')
    chosen = _one_of("default", DecisionKind, given["kind"], *BY_PERSON)
    _needs(chosen, given.get("value"), "default")
    return Fallback(kind=chosen, value=raw("default", given.get("value")))


def _needs(kind: DecisionKind, value: Any, field: str) -> None:
    if kind in NEED_VALUE and value is None:
        raise invalid(field, f"{kind} carries a value: what was edited, or what is said")


def numbered(request: Park, n: int) -> Park:
    """The same question, as the n-th of its name."""
    return msgspec.structs.replace(request, n=n)


def reconciling(ask: StartEffect, start: Start) -> Park:
    """A wait until somebody has found out what became of an effect."""
    said = {"effect": start.id, "name": ask.name, "key": ask.key, "tries": start.attempt}
    return Park(handle=ask.handle, name=wait_name(start.id), kind=WaitKind.RECONCILE, ask=raw("ask", said), n=None)


def settling(ask: StartEffect, effect_id: str, seconds: float) -> Park:
    """A wait until a look at the other side counts."""
    return Park(
        handle=ask.handle, name=f"look:{effect_id}", kind=WaitKind.TIMER, ask=raw("ask", {"effect": effect_id}),
        n=None, timeout_ms=min(int(seconds * 1_000) + 1, limits.DURATION_MS_MAX),
    )  # fmt: skip


def decide(task: Any, name: Any, kind: Any, value: Any, by: Any, digest: Any) -> Decide:
    """A person's answer."""
    chosen = _one_of("kind", DecisionKind, kind, *BY_PERSON)
    _needs(chosen, value, "value")
    return Decide(
        task_id=task_id(task, "task_id"), name=border.name("name", name), kind=chosen, value=raw("value", value),
        by=border.name("by", by), digest=border.maybe_name("digest", digest),
    )  # fmt: skip


def signal(task: Any, name: Any, payload: Any) -> Signal:
    """A value for a task."""
    return Signal(
        task_id=task_id(task, "task_id"), name=border.name("name", name), call_id=new_call_id(),
        payload=raw("payload", payload),
    )  # fmt: skip


def start_effect(
    handle: Handle, name: Any, payload: Any, contract: Contract, *, timeout_ms: int, key: Any
) -> StartEffect:
    """An effect that is about to be tried."""
    return StartEffect(
        handle=handle, name=border.name("name", name), payload=raw("payload", payload), contract=contract,
        timeout_ms=timeout_ms, key=border.maybe_name("key", key), call_id=new_call_id(),
    )  # fmt: skip


def reconcile(effect_id: Any, outcome: Any, receipt: Any, by: Any) -> Reconcile:
    """What a person found out."""
    found = _one_of("outcome", Outcome, outcome, Outcome.APPLIED, Outcome.NOT_APPLIED)
    if receipt is not None and found is Outcome.NOT_APPLIED:
        raise invalid("receipt", "goes with applied; what was not applied has none")
    return Reconcile(
        effect_id=border.name("effect_id", effect_id), outcome=found, by=border.name("by", by),
        receipt=msgspec.UNSET if receipt is None else raw("receipt", receipt),
    )  # fmt: skip


def effects(state: Any, task: Any, after: Any, limit: Any) -> Effects:
    """A page of effects."""
    return Effects(
        state=None if state is None else _one_of("state", EffectState, state, *EffectState),
        task_id=None if task is None else task_id(task, "task_id"), after=border.maybe_name("after", after),
        limit=page(limit),
    )  # fmt: skip


def progress(handle: Handle, note: Any) -> Progress:
    """A short text; cleaned and cut rather than refused."""
    return Progress(handle=handle, note=border.text(note, most=limits.TEXT_CHARS_MAX))


def child_id(parent: str, name: Any) -> str:
    """The id of a child task: the same for each run of its parent."""
    child = f"{parent}.{border.name('name', name)}"
    if len(child) <= limits.ID_CHARS_MAX:
        return child
    mark = digest_of(parent, name)
    return f"{child[: limits.ID_CHARS_MAX - len(mark) - 1]}~{mark}"


def artifact_name(value: Any) -> str:
    """A plain name: what is attached lies by its digest, and a name is no path."""
    name = border.name("name", value)
    if "/" in name or "\\" in name or name in (".", ".."):
        raise invalid("name", f"{shown(name)} holds a path; give a plain name such as page-3.png")
    return name


def _one_of(field: str, kind: Any, value: Any, *allowed: StrEnum) -> Any:
    try:
        found = kind(value)
    except ValueError:
        found = None
    if found is None or found not in allowed:
        raise invalid(field, f"{shown(value)} is none; there are {', '.join(allowed)}")
    return found
