"""Claims that come twice, by something on the way or a client that heard nothing: both are told of one grant."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from relet.core.access import Access
from relet.core.again import again
from relet.core.errors import LeaseLost, Unavailable
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete
from relet.server.counted import Counted

KEPT_MAX: Final = 4_000
"""Calls that are remembered; a repetition comes within seconds, and the client's own says that it is one."""
LOOK_S: Final = 2.0
"""How often somebody who waits for the first is looked after."""

Answered = Callable[[Any], Awaitable[Any]]
GoesOn = Callable[[], Awaitable[bool]]


class Doubled:
    """The second of one call waits for the first, and is asked as a repetition, which finds what that was granted."""

    def __init__(self, waiting: Counted) -> None:
        self._waiting = waiting
        self._calls: OrderedDict[tuple[str, str, str], asyncio.Event | None] = OrderedDict()
        """Those under way, each with what tells of its end; None for one that has ended."""

    async def once(self, access: Access, ask: Any, answered: Answered, goes_on: GoesOn) -> Any:
        """What `answered` says of the request, marked as a repetition where it is one.

        Raises `Unavailable` where `goes_on` says that nobody waits for the answer any more.
        """
        claim = ask.next if isinstance(ask, Complete) else ask
        if not isinstance(claim, Claim) or claim.call_id is None:
            return await answered(ask)
        call = access.tenant, access.key_id, claim.call_id
        if call in self._calls:
            if (first := self._calls[call]) is not None:
                with self._waiting.one(access.key_id):
                    await _end_of(first, goes_on)
            try:
                return await answered(again(ask))
            except LeaseLost:
                if claim.again:
                    raise
                # What the first was granted has ended: whoever asks once more under the same name wants another.
                return await answered(ask)
        over = self._calls[call] = asyncio.Event()
        if len(self._calls) > KEPT_MAX:
            self._calls.popitem(last=False)
        try:
            return await answered(ask)
        finally:
            over.set()
            if call in self._calls:
                self._calls[call] = None


async def _end_of(first: asyncio.Event, goes_on: GoesOn) -> None:
    while True:
        with suppress(TimeoutError):
            await asyncio.wait_for(first.wait(), LOOK_S)
        if not await goes_on():
            raise Unavailable("whoever asked has gone; nothing was done for this request")
        if first.is_set():
            return
