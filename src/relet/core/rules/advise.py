"""advise: which ttl and which longest hold fit a queue, from what its leases have taken."""

from __future__ import annotations

from typing import Final

from relet.core import limits
from relet.core.advice import Advice
from relet.core.advice import advise as advice_on
from relet.core.backend import Request
from relet.core.fields import Name
from relet.core.operation import Operation
from relet.core.pasting import TENANT
from relet.core.tx import Tx


class Advise(Request, frozen=True, kw_only=True):
    """Advice on one queue, or on each of which a lease is among the newest."""

    queue: Name | None = None


async def advise(tx: Tx, ask: Advise) -> list[Advice]:
    """Figures and settings by queue; bounded in its work, however many leases the register holds."""
    samples = await tx.find_samples(ask.queue, limits.ADVICE_LEASES)
    late = await tx.find_late_holders(ask.queue, limits.REJECTIONS_KEPT)
    queues = sorted(samples) if ask.queue is None else [ask.queue]
    tenant = None if tx.tenant == TENANT else tx.tenant
    return [advice_on(queue, samples.get(queue, []), late.get(queue, []), tenant) for queue in queues]


ADVISE: Final = Operation("advise", Advise, list[Advice], advise, "Which settings fit a queue.", writes=False)
