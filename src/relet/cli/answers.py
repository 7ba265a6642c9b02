"""Who answers a question of a task, by which command, and how the answer is told."""

from __future__ import annotations

from typing import Any

import msgspec

from relet.cli.words import quoted
from relet.core.border import invalid
from relet.core.rules.effect import named_effect
from relet.core.work import Decision, Effect, EffectState, Wait, WaitKind


def answer_command(wait: Wait) -> str | None:
    """The command that answers an open question; None where time does, and nobody need."""
    task, name = quoted(wait.task_id), quoted(wait.name)
    match wait.kind:
        case WaitKind.APPROVAL:
            return f"relet decide {task} {name} accept --digest {wait.digest}"
        case WaitKind.SIGNAL:
            return f"relet signal {task} {name}"
        case WaitKind.RECONCILE:
            return f"relet reconcile {named_effect(wait.name)} applied"
        case WaitKind.TIMER:
            return None


def others(wait: Wait) -> str:
    """What else could be answered, or given along."""
    match wait.kind:
        case WaitKind.APPROVAL:
            return "or deny, edit, respond, ignore"
        case WaitKind.SIGNAL:
            return "with its payload as JSON, if it has one"
        case WaitKind.RECONCILE:
            return "or not_applied, once you have found out which"
        case WaitKind.TIMER:
            return ""


def reconcile_command(effect: Effect) -> str | None:
    """The command that settles an effect, as a shell would have to be given it; None when nobody need."""
    return f"relet reconcile {effect.id} applied" if effect.state is EffectState.UNKNOWN else None


def fields(decision: Decision) -> dict[str, Any]:
    """A decision for programs, and with it whether what was asked for may be done."""
    return {**msgspec.structs.asdict(decision), "accepted": decision.accepted}


def who(given: str | None) -> str:
    """Who answers: the name that was given, else this user's login name. Raises `Invalid` when there is none."""
    if given is not None:
        return given
    import getpass

    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError) as nobody:
        raise invalid("by", "this user has no login name; say who answers by --by NAME") from nobody
