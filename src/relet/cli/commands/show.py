"""`relet show`: one task in full: who holds it, why it was taken over, what was refused, what to do next."""

from __future__ import annotations

from datetime import datetime

import click

from relet.cli.account import Account, Released, Takeover, account_of
from relet.cli.answers import OTHERWISE, by_itself, evidence, others
from relet.cli.bounds import why_waiting
from relet.cli.colour import Paint
from relet.cli.options import reveal_option, verb
from relet.cli.session import Session, encoded
from relet.cli.words import clean, cut, flat, now_utc, pairs, since, span, state_word, until, when
from relet.core.model import Rejection, State, Task
from relet.core.states import FINISHED
from relet.core.work import Decision, Effect, EffectState

LINES_MAX = 5
"""Of each kind of line, shown in words; --json has them all."""
INPUT_CHARS_MAX = 200


@verb("show", example="relet show r-1")
@click.argument("id")
@reveal_option()
def show(session: Session, id: str) -> None:
    """Show one task in full.

    Who holds it and since when, its token, heartbeat and expiry; what it waits for, and what was decided; attempts,
    failures and losses; who took it over from whom and why; writes that were refused; its checkpoints, steps and
    artifacts, and effects that are not settled; its error, and the command to go on with. What is secret is hidden.
    """
    account = account_of(session.existing(), id)
    if session.json:
        session.answer(account)
        return
    account = session.seen(account)
    now, task = now_utc(), account.task
    session.data(f"{clean(task.id)}  {state_word(task, now, Paint(session.color))}")
    rows = [*_facts(task), *_holding(account, now), *_asked(account, now), *_past(account), *_kept(account, now)]
    session.data(pairs([*rows, *_outcome(account)]))


def _facts(task: Task) -> list[tuple[str, str]]:
    rows = [("queue", clean(task.queue) + (f", kind {clean(task.kind)}" if task.kind != task.queue else ""))]
    if task.labels:
        rows.append(("labels", clean(", ".join(f"{name}={value}" for name, value in task.labels.items()))))
    rows.append(("input", cut(clean(encoded(task.input)), INPUT_CHARS_MAX)))
    rows.append(("made", f"{when(task.created_at)}, priority {task.priority}"))
    if task.deadline is not None:
        rows.append(("deadline", when(task.deadline)))
    if task.exclusive is not None:
        rows.append(("exclusive", clean(task.exclusive)))
    if task.share is not None:
        rows.append(("share", clean(task.share)))
    return rows


def _holding(account: Account, now: datetime) -> list[tuple[str, str]]:
    task = account.task
    if task.state is not State.LEASED:
        rows = [("held by", "nobody")]
        if task.holder is not None:
            rows = [("held by", f"nobody; last by {clean(task.holder)}, token {task.token}")]
        if task.state is not State.WAITING and task.due_at is not None and task.due_at > now:
            rows.append(("due", f"{when(task.due_at)}, in {until(task.due_at, now)}"))
        elif account.queue is not None and (why := why_waiting(account.queue, task.share)) is not None:
            rows.append(("held back", why))
        return rows
    assert task.expires_at is not None and task.renew_by is not None, "a leased task has a lease"
    since_when = f"since {when(task.claimed_at)} ({since(task.claimed_at, now)})"
    lapsed = f"lapsed {until(task.expires_at, now)}, at {when(task.expires_at)}; not yet taken back"
    rows = [
        ("held by" if task.live else "was held by", f"{clean(task.holder)}, token {task.token}, {since_when}"),
        ("ttl", "-" if account.ttl is None else span(account.ttl)),
        ("heartbeat", f"last {since(task.last_heartbeat, now)} ago, at {when(task.last_heartbeat)}"),
        ("renew by", f"{when(task.renew_by)}" + ("" if task.renew_by > now else ", which has passed: at risk")),
        ("expires", f"in {until(task.expires_at, now)}, at {when(task.expires_at)}" if task.live else lapsed),
    ]
    if task.cancel_requested:
        rows.append(("cancel", "asked for; its writes are refused from now on"))
    return rows


def _past(account: Account) -> list[tuple[str, str]]:
    task = account.task
    losses = f"{task.losses} loss" if task.losses == 1 else f"{task.losses} losses"
    failures = f"{task.failures} failure" if task.failures == 1 else f"{task.failures} failures"
    rows = [("attempt", f"{task.attempt}: {failures} and {losses} so far")]
    rows += [("taken over", _takeover(item, account.task)) for item in account.takeovers[-LINES_MAX:]]
    rows += [("given back", _released(item)) for item in account.released[-LINES_MAX:]]
    rows += [("refused", _rejection(item)) for item in account.rejections[:LINES_MAX]]
    return rows


def _asked(account: Account, now: datetime) -> list[tuple[str, str]]:
    rows, wait = [], account.waiting
    if wait is not None:
        end = "" if wait.due_at is None else f", until {when(wait.due_at)}"
        since_when = f"since {when(wait.opened_at)} ({since(wait.opened_at, now)})"
        rows.append(("waits for", f"{wait.kind} {clean(wait.name)}, {since_when}{end}"))
        if wait.ask is not None:
            rows.append(("ask", cut(flat(wait.ask), INPUT_CHARS_MAX)))
    rows += [("decided", _decision(one)) for one in account.decisions[-LINES_MAX:]]
    return rows + [("effect", one) for one in account.settled[-LINES_MAX:]]


def _decision(one: Decision) -> str:
    value = "" if one.value is None else f": {cut(flat(one.value), INPUT_CHARS_MAX)}"
    name = clean(one.name) + (f" (question {one.n})" if one.n > 1 else "")
    return f"{name}, {one.kind} by {clean(one.by)} at {when(one.at)}{value}"


def _kept(account: Account, now: datetime) -> list[tuple[str, str]]:
    rows = [
        (
            "checkpoint",
            f"{clean(item.name)}, saved {item.version} times, last {since(item.at, now)} ago by token {item.token}",
        )
        for item in account.checkpoints[:LINES_MAX]
    ]
    if (steps := account.steps).steps:
        cost = f" and a cost of {steps.cost:g}" if steps.cost else ""
        rows.append(("steps", f"{steps.steps} kept, which saves a later holder {span(steps.took_ms / 1_000)}{cost}"))
    rows += [
        ("artifact", f"{clean(one.name)}, {one.size} bytes, by token {one.token}, {one.uri}")
        for one in account.artifacts[-LINES_MAX:]
    ]
    for one in account.effects[:LINES_MAX]:
        rows.append(("effect", _effect(one, account.ways.get(one.id))))
        rows += [("evidence", said) for said in evidence(one)[-LINES_MAX:]]
    return rows


def _effect(one: Effect, command: str | None) -> str:
    why = "" if one.error is None else f": {clean(one.error)}"
    way = "" if command is None else f" → {command} ({OTHERWISE})"
    if command is None and one.state is EffectState.UNKNOWN:
        way = f"; {by_itself(one)}"
    tried = f"try {one.tries} by token {one.token}"
    return f"{clean(one.name)}, {one.state} since {when(one.updated_at)}, {tried}{why}{way}"


def _takeover(item: Takeover, task: Task) -> str:
    old = f"{clean(item.from_holder)} (token {item.from_token})"
    new = f"{clean(item.to_holder)} (token {item.to_token})"
    if item.to_token is None:
        new = "nobody" if task.state in FINISHED else "nobody yet"
    silent = span(item.silent_ms / 1_000)
    if item.clock == "holder":
        ended = f"let go at {when(item.lapsed_at)} by its holder's own clock"
    elif item.expired_at is None:
        ended = f"ended before its time at {when(item.lapsed_at)}, as its process had ended"
    else:
        ended = f"expired at {when(item.expired_at)} by the {item.clock}'s clock"
    by = "" if item.by is None else f" ({item.by})"
    return (
        f"from {old} by {new} at {when(item.taken_at or item.lapsed_at)}: {item.reason}{by}; last renewed at "
        f"{when(item.last_renewal)}, silent for {silent}, {ended}"
    )


def _released(item: Released) -> str:
    after = "" if item.to_token is None else f"; then claimed by {clean(item.to_holder)} (token {item.to_token})"
    return f"by {clean(item.holder)} (token {item.token}) at {when(item.at)}: {item.reason}{after}"


def _rejection(item: Rejection) -> str:
    late = "" if item.late_ms is None else f", {span(item.late_ms / 1_000)} late"
    current = "" if item.current_token in (None, item.token) else f" (now {item.current_token})"
    return f"{item.verb} by {clean(item.holder)} at {when(item.at)}: token {item.token}{current}, {item.reason}{late}"


def _outcome(account: Account) -> list[tuple[str, str]]:
    task, rows = account.task, []
    if task.progress is not None:
        rows.append(("progress", clean(task.progress)))
    if task.error is not None:
        rows.append(("error", clean(task.error) + (f" [{clean(task.code)}]" if task.code else "")))
    if task.reason is not None:
        rows.append(("reason", clean(task.reason)))
    said = _beside(account)
    rows.append(("next", f"{account.next}    ({said})" if said else account.next))
    return rows


def _beside(account: Account) -> str:
    """What to know about the next command."""
    if account.waiting is not None:
        return others(account.waiting)
    if account.next.startswith("relet worker "):
        return "it is at risk; if its holder has died, a worker takes over after its lease"
    if account.task.state is State.FAILED and account.next.startswith("relet submit "):
        return "with an input that fits; a requeue would fail the same way"
    return ""
