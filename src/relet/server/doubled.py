"""Claims that come twice, by something on the way or a client that heard nothing: both are told of one grant."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final

from relet.core.again import again
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete

KEPT_MAX: Final = 10_000
"""Calls that are remembered; a repetition comes within seconds."""


class Doubled:
    """The second of one call waits for the first, and is asked as a repetition, which finds what that was granted."""

    def __init__(self) -> None:
        self._calls: OrderedDict[tuple[str, str], asyncio.Event] = OrderedDict()

    async def once(self, tenant: str, ask: Any, answered: Callable[[Any], Awaitable[Any]]) -> Any:
        """What `answered` says of the request, marked as a repetition where it is one."""
        if (call_id := _call_id(ask)) is None:
            return await answered(ask)
        if (first := self._calls.get((tenant, call_id))) is not None:
            await first.wait()
            return await answered(again(ask))
        over = self._calls[tenant, call_id] = asyncio.Event()
        if len(self._calls) > KEPT_MAX:
            self._calls.popitem(last=False)
        try:
            return await answered(ask)
        finally:
            over.set()


def _call_id(ask: Any) -> str | None:
    claim = ask.next if isinstance(ask, Complete) else ask
    return claim.call_id if isinstance(claim, Claim) else None
