"""Limits of queues in words: what they are, what is held, and what keeps ready tasks waiting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from relet.cli.words import clean, quoted, span
from relet.client.blocking import Client
from relet.core.rules.queues import QueueState
from relet.core.rules.room import HeldBack

UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms"))


def rate_text(rate: int | None, rate_ms: int | None) -> str:
    """A rate as it is given: "100/m", "10/30s"."""
    if rate is None or rate_ms is None:
        return "none"
    times, unit = _in_units(rate_ms)
    return f"{rate}/{'' if times == 1 else times}{unit}"


def retention_text(retention_ms: int | None) -> str:
    """A retention as it is given: "30d"; or that there is none."""
    if retention_ms is None:
        return "none"
    times, unit = _in_units(retention_ms)
    return f"{times}{unit}"


def _in_units(ms: int) -> tuple[int, str]:
    return next((ms // size, unit) for size, unit in UNITS if ms % size == 0)


def limit_text(limit: int | None) -> str:
    """A limit, or that there is none."""
    return "none" if limit is None else str(limit)


def held_back_in(client: Client, queues: Sequence[str]) -> str:
    """What keeps those of the queues waiting that have something ready, to end a sentence with; or empty."""
    found = [(name, why) for name in queues if (why := why_waiting(client.queues(name)[0])) is not None]
    return "".join(f"; {name}: {why}" for name, why in found if any(one.ready for one in client.stats(name).queues))


def why_waiting(queue: QueueState, share: str | None = None) -> str | None:
    """Why ready tasks of the queue are not granted now, and the way on; None when nothing of its settings is why."""
    name = quoted(queue.name)
    match queue.held_back:
        case None:
            return None
        case HeldBack.PAUSED:
            return f"its queue is paused → relet unpause {name}"
        case HeldBack.CONCURRENCY:
            return f"its queue is at its limit, {queue.concurrency} live at once → relet limits {name}"
        case HeldBack.SHARE_CONCURRENCY:
            most = queue.share_concurrency
            if share is None:
                return f"each share with ready tasks is at its limit, {most} live at once → relet limits {name}"
            return f"its share {clean(share)} is at its limit, {most} live at once → relet limits {name}"
        case HeldBack.RATE:
            text, soon = rate_text(queue.rate, queue.rate_ms), span((queue.next_ms or 0) / 1_000)
            return f"its queue is at its rate, {text}; the next one starts in {soon} → relet limits {name}"
        case _:
            assert_never(queue.held_back)
