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
"""Calls that are remembered after their end; a repetition comes within seconds, and the client's own says so."""
LOOK_S: Final = 2.0
"""How often somebody who waits for the first is looked after."""

Call = tuple[str, str, str]
"""Its tenant, its key, and its own id."""
Answered = Callable[[Any], Awaitable[Any]]
GoesOn = Callable[[], Awaitable[bool]]


class Doubled:
    """The second of one call waits for the first, and is asked as a repetition, which finds what that was granted."""

    def __init__(self, waiting: Counted) -> None:
        self._waiting = waiting
        self._under_way: dict[Call, asyncio.Event] = {}
        """Each with what tells of its end."""
        self._ended: OrderedDict[Call, None] = OrderedDict()

    async def once(self, access: Access, ask: Any, answered: Answered, goes_on: GoesOn) -> Any:
        """What `answered` says of the request, marked as a repetition where it is one.

        Raises `Unavailable` where `goes_on` says that nobody waits for the answer any more.
        """
        claim = ask.next if isinstance(ask, Complete) else ask
        if not isinstance(claim, Claim) or claim.call_id is None:
            return await answered(ask)
        call = access.tenant, access.key_id, claim.call_id
        if (first := self._under_way.get(call)) is not None:
            with self._waiting.one(access.key_id):
                await _end_of(first, goes_on)
        if first is not None or call in self._ended:
            try:
                return await answered(again(ask))
            except LeaseLost:
                if claim.again:
                    raise
                # What the first was granted has ended: whoever asks once more under the same name wants another.
                return await answered(ask)
        over = self._under_way[call] = asyncio.Event()
        try:
            return await answered(ask)
        finally:
            over.set()
            del self._under_way[call]
            self._ended[call] = None
            if len(self._ended) > KEPT_MAX:
                self._ended.popitem(last=False)


async def _end_of(first: asyncio.Event, goes_on: GoesOn) -> None:
    while True:
        with suppress(TimeoutError):
            await asyncio.wait_for(first.wait(), LOOK_S)
        if not await goes_on():
            raise Unavailable("whoever asked has gone; nothing was done for this request")
        if first.is_set():
            return
