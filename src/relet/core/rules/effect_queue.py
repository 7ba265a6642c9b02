"""effect_queue: of which queue an effect is; asked by the service, for keys that are bound to queues."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core.fields import Name
from relet.core.operation import Operation
from relet.core.tx import Tx


class FindEffectQueue(msgspec.Struct, frozen=True, kw_only=True):
    """Of the effect of an id."""

    effect_id: Name


async def effect_queue(tx: Tx, ask: FindEffectQueue) -> str | None:
    """That of the task which tried it last; None where there is no such effect."""
    effect = await tx.find_effect(ask.effect_id)
    return None if effect is None else effect.queue


# Not in the catalog: who sees the effect sees its queue.
EFFECT_QUEUE: Final = Operation(
    "effect_queue", FindEffectQueue, str | None, effect_queue, "The queue of an effect.", writes=False,
    for_agents=False,
)  # fmt: skip
