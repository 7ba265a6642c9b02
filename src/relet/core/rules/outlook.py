"""outlook: of queues for which somebody waits, those worth a claim; asked by the service, for all who wait there."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core.fields import Name
from relet.core.operation import Operation
from relet.core.tx import Tx


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """Over queues, any number of them."""

    queues: list[Name]


class Foreseen(msgspec.Struct, frozen=True, kw_only=True):
    """Where something may be had, and when there may be more though nobody commits."""

    queues: list[str]
    """Those in which a task is ready, or becomes so by time: a claim finds it, or when to look again."""
    lapse_ms: int | None
    """After how long the first lease lapses, of whichever queue; None when nothing is held."""


async def outlook(tx: Tx, ask: Outlook) -> Foreseen:
    """Without a lock, and with less care than a claim: what cannot be granted yet is named too."""
    at, lapse_ms = await tx.instants(), await tx.find_next_lapse()
    return Foreseen(
        queues=await tx.find_stirred(ask.queues), lapse_ms=None if lapse_ms is None else lapse_ms - at.now_ms
    )


# Not in the catalog: whoever may claim there asks `glance`.
OUTLOOK: Final = Operation(
    "outlook", Outlook, Foreseen, outlook, "Queues that are worth a claim.", writes=False, for_agents=False
)
