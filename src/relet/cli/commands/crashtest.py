"""`relet crashtest`: kill and freeze whoever works on a task of yours, again and again, and judge what is left."""

from __future__ import annotations

from typing import Any, Final

import click

from relet.cli.exits import Exit
from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.values import json_of, parsed
from relet.core.border import invalid, shown

TOLD_EVERY: Final = 20


@verb(
    "crashtest",
    example="""relet crashtest work:app report --input '{"topic": "grain"}' --answer publish=accept
relet crashtest work:app report --runs 500 --seed 7 --verify checks:sent_once
relet crashtest work:app report --seed 7 --point kill-after:3""",
)
@click.argument("app", metavar="MODULE:APP")
@click.argument("task", metavar="KIND")
@click.option("--input", metavar="JSON", help="The task's input: text, @file, or - for stdin.")
@click.option("--runs", type=int, default=100, help="Runs with faults, at most.  [default: 100]")
@click.option("--seed", type=int, help="What chooses among faults.  [default: by chance, and printed]")
@click.option("--points", help="commits, random, or all.  [default: all]", default="all", metavar="WHICH")
@click.option("--point", metavar="FAULTS", help="One run with these, such as kill-after:3 or freeze-at:40ms.")
@click.option("--ttl", metavar="DURATION", help="How long a lease lasts.  [default: the handler's]")
@click.option("--answer", "answers", metavar="NAME=WORD[:JSON]", multiple=True, help="A decision. Repeatable.")
@click.option("--signal", "signals", metavar="NAME=JSON", multiple=True, help="What is sent to it. Repeatable.")
@click.option("--reconcile", metavar="MODULE:FUNCTION", help="Says what became of an effect that nobody knows of.")
@click.option("--verify", metavar="MODULE:FUNCTION", help="A check of your own, after each run.")
@click.option("--same-result", is_flag=True, help="The result must be that of the run without faults.")
@click.option("--limit", metavar="DURATION", default="60s", help="How long one process may take.  [default: 60s]")
@click.option("--jobs", type=int, default=1, help="Runs at the same time.  [default: 1]")
@click.option("--keep", metavar="FOLDER", help="Keep the store of a run that failed here.")
@click.option("--wrap", metavar="MODULE:FUNCTION", help="Puts a backend of your own between holders and store.")
def crashtest(
    session: Session, app: str, task: str, input: str | None, limit: str, ttl: str | None,
    answers: tuple[str, ...], signals: tuple[str, ...], reconcile: str | None, verify: str | None,
    same_result: bool, wrap: str | None, **how: Any,
) -> Exit:  # fmt: skip
    """Crash one of your tasks on purpose, at every commit and at random times.

    MODULE:APP names the relet.App, KIND the handler. The task runs once without faults, then up to --runs times with
    them, each on a temporary store (with --url postgresql://… in a schema of its own), with real processes: killed or
    frozen before and after each commit, or cut off from the store or from its reply. After each run what is left is
    judged. The first thing that does not hold is printed with its seed and the command that repeats it, and the exit
    code is 8.
    """
    from relet.testing.crash.case import case_of
    from relet.testing.crash.child import function_of
    from relet.testing.crash.examine import examine
    from relet.testing.crash.told_to_end import told_to_end

    case = case_of(
        app, task, json_of("input", input), answers=dict(_answer(one) for one in answers), limit=limit, ttl=ttl,
        url=session.given.get("url"),
        signals=dict(_signal(one) for one in signals), wrap=wrap, same_result=same_result,
        reconcile=None if reconcile is None else function_of("reconcile", reconcile),
        verify=None if verify is None else function_of("verify", verify),
    )  # fmt: skip

    def tell(done: int, planned: int) -> None:
        if done % TOLD_EVERY == 0 and not session.json:
            session.talk(f"{done} of {planned} runs")

    with told_to_end() as ending:
        report = examine(case, tell=tell, ending=ending, **how)
    if session.json:
        session.answer(report)
    else:
        session.data(str(report))
    return Exit.OK if report.ok else Exit.FINDINGS


def _answer(text: str) -> tuple[str, Any]:
    name, word = _pair("answer", text, "publish=accept")
    kind, colon, value = word.partition(":")
    return name, (kind, parsed("answer", value)) if colon else kind


def _signal(text: str) -> tuple[str, Any]:
    name, value = _pair("signal", text, "go={}")
    return name, parsed("signal", value)


def _pair(field: str, text: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise invalid(field, f"{shown(text)} is not NAME=…; write {example}")
    return name, value
