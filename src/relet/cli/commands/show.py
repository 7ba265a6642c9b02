"""`relet show`: one task in full: who holds it, why it was taken over, what was refused, what to do next."""

from __future__ import annotations

from datetime import datetime

import click

from relet.cli.account import Account, Takeover, account_of
from relet.cli.colour import Paint
from relet.cli.options import verb
from relet.cli.session import Session, encoded
from relet.cli.words import clean, now_utc, pairs, since, span, state_word, until, when
from relet.core.model import Rejection, State, Task

LINES_MAX = 5
"""Takeovers, refused writes and checkpoints shown in words; --json has them all."""
INPUT_CHARS_MAX = 200


@verb("show", example="relet show r-1")
@click.argument("id")
def show(session: Session, id: str) -> None:
    """Show one task in full.

    Who holds it and since when, its token, heartbeat and expiry; attempts, failures and losses; who took it over from
    whom and why; writes that were refused; its checkpoints; its error, and the command to go on with.
    """
    account = account_of(session.reader(), id)
    if session.json:
        session.answer(account)
        return
    now, task = now_utc(), account.task
    session.data(f"{clean(task.id)}  {state_word(task, now, Paint(session.color))}")
    session.data(pairs([*_facts(task), *_holding(account, now), *_past(account, now), *_outcome(account)]))


def _facts(task: Task) -> list[tuple[str, str]]:
    rows = [("queue", clean(task.queue) + (f", kind {clean(task.kind)}" if task.kind != task.queue else ""))]
    if task.labels:
        rows.append(("labels", clean(", ".join(f"{name}={value}" for name, value in task.labels.items()))))
    text = clean(encoded(task.input))
    rows.append(
        ("input", text if len(text) <= INPUT_CHARS_MAX else f"{text[:INPUT_CHARS_MAX]}… ({len(text)} characters)")
    )
    rows.append(("made", f"{when(task.created_at)}, priority {task.priority}"))
    if task.deadline is not None:
        rows.append(("deadline", when(task.deadline)))
    if task.exclusive is not None:
        rows.append(("exclusive", clean(task.exclusive)))
    return rows


def _holding(account: Account, now: datetime) -> list[tuple[str, str]]:
    task = account.task
    if task.state is not State.LEASED:
        rows = [("held by", "nobody")]
        if task.holder is not None:
            rows = [("held by", f"nobody; last by {clean(task.holder)}, token {task.token}")]
        if task.due_at is not None and task.due_at > now:
            rows.append(("due", f"{when(task.due_at)}, in {until(task.due_at, now)}"))
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


def _past(account: Account, now: datetime) -> list[tuple[str, str]]:
    task = account.task
    losses = f"{task.losses} loss" if task.losses == 1 else f"{task.losses} losses"
    failures = f"{task.failures} failure" if task.failures == 1 else f"{task.failures} failures"
    rows = [("attempt", f"{task.attempt}: {failures} and {losses} so far")]
    rows += [("taken over", _takeover(item)) for item in account.takeovers[-LINES_MAX:]]
    rows += [("refused", _rejection(item)) for item in account.rejections[:LINES_MAX]]
    rows += [
        (
            "checkpoint",
            f"{clean(item.name)}, saved {item.version} times, last {since(item.at, now)} ago by token {item.token}",
        )
        for item in account.checkpoints[:LINES_MAX]
    ]
    return rows


def _takeover(item: Takeover) -> str:
    old = f"{clean(item.from_holder)} (token {item.from_token})"
    new = "nobody yet" if item.to_token is None else f"{clean(item.to_holder)} (token {item.to_token})"
    silent = span(item.silent_ms / 1_000)
    return (
        f"from {old} by {new} at {when(item.taken_at or item.lapsed_at)}: {item.reason}; last renewed at "
        f"{when(item.last_renewal)}, silent for {silent}"
    )


def _rejection(item: Rejection) -> str:
    late = "" if item.late_ms is None else f", {span(item.late_ms / 1_000)} late"
    current = "" if item.current_token in (None, item.token) else f" (now {item.current_token})"
    return f"{item.verb} by {clean(item.holder)} at {when(item.at)}: token {item.token}{current}, {item.reason}{late}"


def _outcome(account: Account) -> list[tuple[str, str]]:
    task, rows = account.task, []
    if task.error is not None:
        rows.append(("error", clean(task.error) + (f" [{clean(task.code)}]" if task.code else "")))
    if task.reason is not None:
        rows.append(("reason", clean(task.reason)))
    rows.append(("next", account.next))
    return rows
