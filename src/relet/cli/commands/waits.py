"""`relet waits`: what people are asked, and how to answer it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click
import msgspec

from relet.cli.answers import answer_command, others, settled
from relet.cli.colour import Paint
from relet.cli.options import reveal_option, verb
from relet.cli.session import Session
from relet.cli.words import clean, cut, flat, now_utc, pairs, since, until, when
from relet.core.border import invalid
from relet.core.work import Effect, EffectState, Wait, WaitKind

ASK_CHARS_MAX = 2_000


@verb("waits", example="relet waits\nrelet waits --queue reports --json\nrelet waits r-1")
@click.argument("task", required=False)
@click.option("--queue", help="Only this queue's.")
@click.option("--kind", type=click.Choice([str(kind) for kind in WaitKind]), help="Only of this kind.")
@reveal_option()
def waits(session: Session, task: str | None, queue: str | None, kind: str | None) -> None:
    """List the questions that are open: an inbox.

    What is asked, by which task, since when and until when, the digest of the question, and the command that answers
    it. Those that only time answers are left out, unless --kind timer asks for them. With TASK all questions of that
    task, and the decisions.
    """
    if task is not None and queue is not None:
        raise invalid("queue", "goes without a task; a task has one queue")
    found = session.existing().waits(task, queue)
    if kind is not None:
        found = [wait for wait in found if wait.kind == kind]
    elif task is None:
        found = [wait for wait in found if wait.kind is not WaitKind.TIMER]
    effects = _doubtful(session, found)
    if session.json:
        session.answer({"waits": [_fields(wait, effects) for wait in found]})
    else:
        now, paint = now_utc(), Paint(session.color)
        for wait in session.seen(found):
            session.data(_told(wait, effects, now, paint))
    if not found:
        session.empty("nobody is asked anything" if task is None else f"nothing was asked by task {clean(task)}")


def _doubtful(session: Session, waits: list[Wait]) -> list[Effect]:
    """The unknown effects of the tasks that are parked for one."""
    tasks = {wait.task_id for wait in waits if wait.open and wait.kind is WaitKind.RECONCILE}
    return [one for task in sorted(tasks) for one in session.existing().effects(EffectState.UNKNOWN, task)]


def _fields(wait: Wait, effects: list[Effect]) -> dict[str, Any]:
    return {**msgspec.structs.asdict(wait), "next": answer_command(wait, effects) if wait.open else None}


def _told(wait: Wait, effects: list[Effect], now: datetime, paint: Paint) -> str:
    name = clean(wait.name) + (f" (question {wait.n})" if wait.n > 1 else "")
    head = f"{paint(clean(wait.task_id), None, bold=True)}  {name}  {wait.kind} in {clean(wait.queue)}"
    rows = [("since", f"{when(wait.opened_at)} ({since(wait.opened_at, now)})")]
    if wait.due_at is not None:
        left = f"in {until(wait.due_at, now)}" if wait.due_at > now else until(wait.due_at, now)
        rows.append(("until", f"{when(wait.due_at)} ({left})" if wait.open else when(wait.due_at)))
    rows += [("ask", cut(flat(wait.ask), ASK_CHARS_MAX)), ("digest", wait.digest)]
    if (found := settled(wait)) is not None:
        rows.append(("effect", found))
    elif (made := wait.decision) is not None:
        value = "" if made.value is None else f": {cut(flat(made.value), ASK_CHARS_MAX)}"
        rows.append(("decided", f"{made.kind} by {clean(made.by)} at {when(made.at)}{value}"))
    elif not wait.open:
        rows.append(("decided", "no: it was withdrawn"))
    elif (command := answer_command(wait, effects)) is not None:
        rows.append(("answer", f"{command}    ({others(wait)})"))
    return f"{head}\n{pairs(rows)}"
