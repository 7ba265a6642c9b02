"""`relet effects`, `relet reconcile`: what tasks have done outside, and what became of it."""

from __future__ import annotations

import click

from relet.cli.answers import OTHERWISE, asked_about, evidence, reconcile_command, who
from relet.cli.colour import Paint
from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.values import json_of
from relet.cli.words import clean, table, when
from relet.core.work import Effect, EffectState, Outcome

HEAD = ("EFFECT", "TASK", "NAME", "KEY", "STATE", "CONTRACT", "TRIES", "TOKEN", "EVIDENCE", "CHANGED")


@verb("effects", example="relet effects --state unknown\nrelet effects --task r-1 --json")
@click.option("--state", type=click.Choice([str(state) for state in EffectState]), help="Only in this state.")
@click.option("--task", "task_id", metavar="ID", help="Only of this task.")
@click.option("--limit", type=int, default=100, help="At most so many, 1000 at the utmost.  [default: 100]")
@click.option("--after", metavar="EFFECT", help="Go on after this one, the last of the page before.")
def effects(session: Session, state: str | None, task_id: str | None, limit: int, after: str | None) -> None:
    """List side effects, oldest first, with what is known of each.

    One that is `unknown` was tried, and nobody can say whether it came to pass: where its contract does not settle
    that, somebody must find out, and say so by `relet reconcile`. With --json the receipts are there too, and what
    lost holders said of their tries.
    """
    found = session.existing().effects(state, task_id, limit=limit, after=after)
    following = found[-1].id if len(found) == limit else None
    if session.json:
        session.answer({"effects": found, "next": following})
    elif found:
        session.data(table(HEAD, [_row(effect) for effect in session.seen(found)], Paint(session.color)))
        _talk(session, found)
    if not found:
        session.empty("no such effect" if any((state, task_id, after)) else "no effects")
    elif following is not None:
        session.talk(f"there may be more → --after {following}")


def _talk(session: Session, found: list[Effect]) -> None:
    """What late holders said, and what a person has to settle."""
    unknown = [effect for effect in found if effect.state is EffectState.UNKNOWN]
    for effect in unknown:
        for said in evidence(effect):
            session.talk(f"{effect.id} evidence: {said}")
    asked = asked_about(session.existing().waits()) if unknown else set()
    ways = [way for effect in unknown if (way := reconcile_command(effect, asked)) is not None]
    if ways:
        session.talk(f"find out whether an unknown one came to pass, then → {ways[0]} ({OTHERWISE})")
    elif unknown:
        session.talk("the next holders repeat or look up the unknown ones; nobody need reconcile them")


def _row(effect: Effect) -> tuple[str, ...]:
    return (
        effect.id, clean(effect.task_id), clean(effect.name), "-" if effect.key is None else clean(effect.key),
        str(effect.state), str(effect.contract.kind), str(effect.tries), str(effect.token), str(len(effect.evidence)),
        when(effect.updated_at),
    )  # fmt: skip


@verb(
    "reconcile",
    example="""relet reconcile e-681d4d60cf86a17d8ea9923de94eff20 applied --receipt '{"order": 7}'
relet reconcile e-681d4d60cf86a17d8ea9923de94eff20 not_applied --by ann""",
)
@click.argument("effect")
@click.argument("outcome", type=click.Choice([str(Outcome.APPLIED), str(Outcome.NOT_APPLIED)]))
@click.option("--receipt", metavar="JSON", help="With applied: what its function returns, in that shape.")
@click.option("--by", metavar="WHO", help="Who found out; kept with the effect.  [default: your login name]")
def reconcile(session: Session, effect: str, outcome: str, receipt: str | None, by: str | None) -> None:
    """Say what became of an unknown effect.

    EFFECT is its id, as `relet effects` lists it. A task that waits for this goes on: after applied with the receipt,
    after not_applied by trying again. Refused (exit code 11) when it is settled otherwise, or still under way.
    """
    settled = session.existing().reconcile(effect, outcome, json_of("receipt", receipt), who(by))
    if session.json:
        session.answer(settled)
    elif settled.state is EffectState.FAILED:
        session.data("not applied: it will be tried again")
    else:
        session.data("applied")
