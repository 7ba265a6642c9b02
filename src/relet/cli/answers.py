"""Who answers a question of a task, by which command, and how the answer is told."""

from __future__ import annotations

from typing import Any

import msgspec

from relet.cli.words import clean, quoted
from relet.core.border import invalid
from relet.core.rules.effect import WAITS_FOR, named_effect
from relet.core.work import ContractKind, Decision, Effect, EffectState, Evidence, Outcome, Wait, WaitKind

REPEATED = (ContractKind.KEYED, ContractKind.NATURAL, ContractKind.CONDITIONAL)


def answer_command(wait: Wait, effects: list[Effect]) -> str | None:
    """The command that answers an open question; None where time does, and nobody need.

    `effects` are those that are unknown: what late holders said of one is given along.
    """
    task, name = quoted(wait.task_id), quoted(wait.name)
    match wait.kind:
        case WaitKind.APPROVAL:
            return f"relet decide {task} {name} accept --digest {wait.digest}"
        case WaitKind.SIGNAL:
            return f"relet signal {task} {name}"
        case WaitKind.RECONCILE:
            effect_id = named_effect(wait.name)
            return _reconcile(effect_id, next((testimony(one) for one in effects if one.id == effect_id), None))
        case WaitKind.TIMER:
            return None


def others(wait: Wait) -> str:
    """What else could be answered, or given along."""
    match wait.kind:
        case WaitKind.APPROVAL:
            return "or deny, ignore, edit --value JSON, respond --value JSON"
        case WaitKind.SIGNAL:
            return "with its payload as JSON, if it has one"
        case WaitKind.RECONCILE:
            return OTHERWISE
        case WaitKind.TIMER:
            return ""


OTHERWISE = "or not_applied, which tries again; once you have found out which"


def asked_about(waits: list[Wait]) -> set[str]:
    """The effects for whose outcome a task is parked."""
    return {named_effect(wait.name) for wait in waits if wait.open and wait.kind is WaitKind.RECONCILE}


def reconcile_command(effect: Effect, asked: set[str]) -> str | None:
    """The command that settles an effect, as a shell would have to be given it; None when nobody need."""
    if effect.state is not EffectState.UNKNOWN or (by_itself(effect) is not None and effect.id not in asked):
        return None
    return _reconcile(effect.id, testimony(effect))


def by_itself(effect: Effect) -> str | None:
    """How the next holder settles an unknown effect without a person; None where its contract has no way."""
    if effect.contract.kind in REPEATED:
        return "the next holder repeats it, as its contract allows"
    return "the next holder asks the other side" if effect.contract.checked else None


def testimony(effect: Effect) -> Evidence | None:
    """What a late holder knew of an unknown effect: that a try was applied, or that the last one was not."""
    said = [one for one in effect.evidence if one.outcome is not Outcome.UNKNOWN]
    applied = [one for one in said if one.outcome is Outcome.APPLIED]
    last = [one for one in said if (one.token, one.attempt) == (effect.token, effect.tries) and effect.tries == 1]
    return next(iter(applied or last), None)


def evidence(effect: Effect) -> list[str]:
    """What late holders said of its tries, each on one line."""
    return [_said(one) for one in effect.evidence]


def _said(one: Evidence) -> str:
    receipt = f", receipt {_encoded(one.receipt)}" if one.outcome is Outcome.APPLIED else ""
    why = "" if one.error is None else f": {clean(one.error)}"
    return f"token {one.token} says {_outcome(one.outcome)}{receipt}{why}"


def _reconcile(effect_id: str, said: Evidence | None) -> str:
    if said is not None and said.outcome is Outcome.NOT_APPLIED:
        return f"relet reconcile {effect_id} not_applied"
    receipt = "JSON" if said is None else quoted(_encoded(said.receipt))
    return f"relet reconcile {effect_id} applied --receipt {receipt}"


def settled(wait: Wait) -> str | None:
    """What was found out of the effect that a task had been parked for; None for any other question."""
    if wait.kind is not WaitKind.RECONCILE or wait.decision is None:
        return None
    name = wait.ask.get("name") if isinstance(wait.ask, dict) else None
    outcome = Outcome.APPLIED if wait.decision.accepted else Outcome.NOT_APPLIED
    told = wait.name.removeprefix(WAITS_FOR) if name is None else name
    return f"{clean(told)}: {_outcome(outcome)} by {clean(wait.decision.by)}"


def _outcome(outcome: Outcome) -> str:
    return str(outcome).replace("_", " ")


def _encoded(value: Any) -> str:
    from relet.cli.session import encoded

    return clean(encoded(value))


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
