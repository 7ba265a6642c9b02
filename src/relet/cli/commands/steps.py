"""`relet steps`: the calls of a task that a later holder need not make again."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from relet.cli.colour import Paint
from relet.cli.options import reveal_option, verb
from relet.cli.session import Session, encoded
from relet.cli.words import clean, flat, span, table, when
from relet.core.work import Step

HEAD = ("NAME", "CALL", "TOKEN", "AT", "TOOK", "COST", "BYTES")


@verb("steps", example="relet steps r-1\nrelet steps r-1 --values --json")
@click.argument("task")
@click.option("--values", is_flag=True, help="Their results, too.")
@reveal_option()
def steps(session: Session, task: str, values: bool) -> None:
    """List the kept calls of a task, in the order in which they were kept.

    Which call it was (by its key, or by its number), the token of the lease that made it, when, how long it took,
    what it cost, and how large its result is.
    """
    found = session.existing().steps(task)
    if session.json:
        session.answer({"task_id": task, "steps": [_fields(step, values=values) for step in found]})
    elif found:
        head = (*HEAD, "VALUE") if values else HEAD
        session.data(table(head, [_row(step, values=values) for step in session.seen(found)], Paint(session.color)))
    if not found:
        session.empty(f"no steps of task {clean(task)} are kept")


def _fields(step: Step, *, values: bool) -> dict[str, Any]:
    told = {**msgspec.structs.asdict(step), "size": _size(step)}
    if not values:
        del told["value"]
    return told


def _row(step: Step, *, values: bool) -> tuple[str, ...]:
    row = (
        clean(step.name), f"#{step.n}" if step.key is None else clean(step.key), str(step.token), when(step.at),
        span(step.took_ms / 1_000), "-" if step.cost is None else f"{step.cost:g}", str(_size(step)),
    )  # fmt: skip
    return (*row, flat(step.value)) if values else row


def _size(step: Step) -> int:
    return len(encoded(step.value).encode())
