"""`relet advise`: which ttl and which longest hold fit a queue, and why."""

from __future__ import annotations

import click

from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.unused import note_unused
from relet.cli.words import clean, pairs, span
from relet.core.advice import Advice


@verb("advise", example="relet advise reports")
@click.argument("queue", required=False)
def advise(session: Session, queue: str | None) -> None:
    """Say which ttl and which max_hold fit a queue, or each one.

    Measured of the newest leases: how long they took, how late heartbeats came, how many lapsed, who came back too
    late. With the reasons, and the lines to paste; where too little is known, it says so and advises nothing.
    """
    client = session.existing()
    advice = client.advise(queue)
    if queue is not None:
        note_unused(session, client, queue)
    if session.json:
        session.answer({"queues": advice})
        return
    for one in advice:
        session.data(f"queue {clean(one.queue)}")
        session.data(pairs(_rows(one)))
    if not advice:
        session.empty("no leases")


def _rows(one: Advice) -> list[tuple[str, str]]:
    rows = [
        (
            "leases",
            f"{one.leases} looked at: {one.finished} finished, {one.given_back} given back, {one.lapsed} lapsed"
            + (f" ({one.died} by a proven death)" if one.died else "")
            + f", {one.takeovers} takeovers",
        )
    ]
    if (took := one.took) is not None:
        told = (("p50", took.p50_ms), ("p90", took.p90_ms), ("p99", took.p99_ms), ("longest", took.longest_ms))
        rows.append(("took", ", ".join(f"{name} {span(ms / 1_000)}" for name, ms in told)))
    if one.ttl_ms is not None:
        hold = "no max_hold" if one.max_hold_ms is None else f"max_hold {span(one.max_hold_ms / 1_000)}"
        rows.append(("set", f"ttl {span(one.ttl_ms / 1_000)}, {hold}"))
    if one.least_left_ms is not None:
        narrowest = f"the narrowest with {span(one.least_left_ms / 1_000)} left"
        rows.append(("late", f"{one.late_renewals} heartbeats, {narrowest}"))
    if one.late_holders:
        rows.append(("refused", f"{one.late_holders} holders came back after their lease had expired"))
    rows += [("because", clean(why)) for why in one.because]
    rows += [("paste", clean(line)) for line in one.paste]
    return rows if one.paste or one.advised_ttl_ms is None else [*rows, ("paste", "nothing: all may stay as it is")]
