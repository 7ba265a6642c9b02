"""`relet cancel`, `relet requeue`: stop tasks, and give dead ones another life; one by id, or all that match."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from relet.cli.options import Decorated, labels_option, state_option, verb
from relet.cli.session import Session
from relet.client.views import Bulk
from relet.core.border import invalid
from relet.core.model import Task


def many_options(function: Decorated) -> Decorated:
    """Which tasks: one id, or `--all` with conditions."""
    for option in reversed((
        click.argument("id", required=False),
        click.option("--all", "every", is_flag=True, help="All that match the conditions, instead of one id."),
        click.option("--queue", help="With --all: only this queue's."),
        click.option("--kind", help="With --all: only of this kind."),
        state_option("With --all: only in this state."),
        labels_option("With --all: only with this label."),
        click.option("--dry-run", is_flag=True, help="With --all: print which, and change nothing."),
        click.option("--yes", is_flag=True, help="With --all: do not ask."),
    )):  # fmt: skip
        function = option(function)
    return function


@verb(
    "cancel",
    example="relet cancel r-1 --reason 'not wanted any more'\nrelet cancel --all --queue reports --dry-run",
)
@many_options
@click.option("--reason", default="", help="Why; kept with the task.")
def cancel(session: Session, id: str | None, reason: str, **which: Any) -> None:
    """Stop a task, or all that match.

    At once when nobody holds it, else when its holder gives way: from now on that one's writes are refused. A task
    that is done or failed is left as it is (exit code 11).
    """
    chosen = Choice(id, **which)
    if id is not None:
        return _told(session, session.existing().cancel(id, reason))
    client = session.existing()
    return chosen.carry_out(session, "cancel", partial(client.cancel_many, chosen.conditions, reason=reason))


@verb("requeue", example="relet requeue r-1\nrelet requeue --all --queue reports --yes")
@many_options
def requeue(session: Session, id: str | None, **which: Any) -> None:
    """Give a failed or cancelled task, or all that match, another life.

    Limits count anew; checkpoints stay. With --all, and without --state, only failed tasks are meant.
    """
    chosen = Choice(id, **which)
    if id is not None:
        return _told(session, session.existing().requeue(id))
    client = session.existing()
    return chosen.carry_out(session, "requeue", partial(client.requeue_many, chosen.conditions))


class Choice:
    """Which tasks are meant. Raises `Invalid` unless it is one id, or all that match."""

    def __init__(self, id: str | None, *, every: bool, dry_run: bool, yes: bool, **conditions: Any) -> None:
        self.conditions = {name: value for name, value in conditions.items() if value is not None}
        if "labels" in self.conditions and not self.conditions["labels"]:
            del self.conditions["labels"]
        self.dry_run, self.yes = dry_run, yes
        if (id is not None) == every:
            raise invalid("id", "give one task's id, or --all with conditions such as --queue; --dry-run shows which")
        if id is not None and (self.conditions or dry_run):
            raise invalid("id", "conditions and --dry-run go with --all, not with one task's id")

    def carry_out(self, session: Session, word: str, act: Callable[..., Bulk]) -> None:
        """Show, ask where somebody can answer, act."""
        bulk = act(dry_run=True)
        if bulk.ids and not self.dry_run:
            self._confirm(word, bulk.count)
            bulk = act(dry_run=False)
        if session.json:
            session.answer({"ids": bulk.ids, "count": bulk.count, "dry_run": self.dry_run})
        else:
            for one in bulk.ids:
                session.data(one)
        if not bulk.ids:
            session.empty(f"nothing to {word}")
        elif self.dry_run:
            session.talk(f"would {word} {bulk.count}; nothing was changed")

    def _confirm(self, word: str, count: int) -> None:
        if self.yes:
            return
        if not sys.stdin.isatty():
            raise invalid("yes", f"would {word} {count} tasks; nothing was changed. Add --yes to do it")
        click.confirm(f"{word} {count} tasks?", abort=True, err=True)


def _told(session: Session, task: Task) -> None:
    if session.json:
        session.answer(task)
    elif task.cancel_requested:
        session.data(f"{task.state}, cancel requested")
        session.talk(f"its holder {task.holder} gives way at its next verb, or when its lease lapses")
    else:
        session.data(str(task.state))
