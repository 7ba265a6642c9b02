"""What one event of a history says, in words where the event is of durable work, else as its facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from relet.cli.words import clean, flat, span
from relet.core.model import Cause, Event

Detail = dict[str, Any]


def told(event: Event) -> str:
    """The detail of an event on one line."""
    tell = TELL.get(event.kind)
    return _facts(event.detail) if tell is None else tell(event.detail)


def _facts(detail: Detail) -> str:
    return "  ".join(f"{name}={flat(value)}" for name, value in detail.items() if value is not None)


def _claimed(detail: Detail) -> str:
    saved = detail.get("saved")
    rest = _facts({name: value for name, value in detail.items() if name != "saved"})
    return rest if saved is None else f"{rest}  {saved['steps']} steps kept ({_spent(saved)})"


def _stepped(detail: Detail) -> str:
    slot = str(detail["slot"])
    call = f"call {slot[1:]}" if slot.startswith("#") else f"key {clean(slot[1:])}"
    return f"{clean(detail['name'])}, {call}  took {_spent(detail)}"


def _spent(detail: Detail) -> str:
    took = span(detail["took_ms"] / 1_000)
    return f"{took}, cost {detail['cost']:g}" if detail.get("cost") else took


def _attached(detail: Detail) -> str:
    return f"{clean(detail['name'])}, {detail['size']} bytes  {clean(detail['uri'])}"


def _parked(detail: Detail) -> str:
    answered = "  answered already" if detail.get("answered") else ""
    return f"{_question(detail)}  waits for {clean(detail['wait'])}{answered}  digest={clean(detail['digest'])}"


def _answered(detail: Detail) -> str:
    said = f"{clean(detail['decision'])} by {clean(detail['by'])}"
    return f"{_question(detail)}  {said}  digest={clean(detail['digest'])}"


def _question(detail: Detail) -> str:
    return clean(detail["name"]) + (f" (question {detail['n']})" if detail["n"] > 1 else "")


def _signalled(detail: Detail) -> str:
    return f"{clean(detail['name'])}  kept, {detail['kept']} in all"


def _effect_started(detail: Detail) -> str:
    again = ", though an earlier one may have applied" if detail.get("repeated") else ""
    return f"{_try(detail)}{again}  {clean(detail['effect'])}"


def _effect_ended(detail: Detail) -> str:
    return f"{_try(detail)}  {clean(detail['outcome'])}  {clean(detail['effect'])}"


def _try(detail: Detail) -> str:
    return f"{clean(detail['name'])}, try {detail['attempt']}"


TELL: Final[dict[Cause, Callable[[Detail], str]]] = {
    Cause.CLAIMED: _claimed,
    Cause.STEPPED: _stepped,
    Cause.ATTACHED: _attached,
    Cause.PARKED: _parked,
    Cause.ANSWERED: _answered,
    Cause.SIGNALLED: _signalled,
    Cause.EFFECT_STARTED: _effect_started,
    Cause.EFFECT_ENDED: _effect_ended,
}
"""Of these the facts read better as words; --json has them as they are."""
