"""Claims that wait: of those that want the same, only so many try at a change as there may be tasks for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

import msgspec

from relet.core.model import Grant
from relet.core.rules.claim import Claim
from relet.server.lookout import Ask, Lookout
from relet.server.news import News

POLL_S: Final = 0.5
"""How late a task is noticed that nobody told of, and no look foresees: one whose holder is dead."""
POLL_LEAST_S: Final = 0.02
KINDS_AT_ONCE: Final = 20
"""Of more kinds each polls the less often, for one that finds a dead holder ends its leases for all of them; and at a
change those alone try for whom there may be something."""
REST_S: Final = 2.0
"""How long somebody who is not among the first stays in the queue after it has gone, or its key is good no more."""
TRIES_MAX: Final = 32

Try = Callable[[], Awaitable[list[Grant]]]
Goes = Callable[[], Awaitable[bool]]
Next = Callable[[], Awaitable[float | None]]


class _Queue:
    """Those that want the same, in the order of their coming, each with what ends its rest."""

    def __init__(self, tenant: str, names: Sequence[str]) -> None:
        self.tenant, self.names = tenant, names
        self.resting: dict[asyncio.Event, None] = {}
        self.width = 1
        """How many of the first may try."""
        self.poll_s = POLL_S
        """After how long they try though nothing has changed."""

    def stir(self) -> None:
        """Let the first ones try."""
        for turn in islice(self.resting, self.width):
            turn.set()

    def may_try(self, turn: asyncio.Event) -> bool:
        return any(turn is first for first in islice(self.resting, self.width))

    def leave(self, turn: asyncio.Event, *, granted: bool) -> None:
        """Where one found a task there may be more: two may try in its place, and so ever more of them."""
        if granted:
            self.width = min(TRIES_MAX, self.width + 1)
        del self.resting[turn]
        self.stir()


class Claimants:
    """All that wait. An idle crowd costs what one of it does, and a task goes to who has waited longest."""

    def __init__(self, news: News, outlook: Ask) -> None:
        self._news = news
        self._queues: dict[bytes, _Queue] = {}
        self._lookout = Lookout(outlook, self._queues.values)
        news.on_change.append(self._stir)

    async def granted(
        self, tenant: str, ask: Claim, seconds: float, attempt: Try, goes_on: Goes, next_s: Next
    ) -> list[Grant]:  # fmt: skip
        """What `attempt` finds within a time; empty too once `goes_on` says that nobody waits for it any more.

        `next_s` tells after how long there may be something by itself, as where a rate lets the next through.
        """
        kind, seen = kind_of(tenant, ask), self._news.version
        # The answer to a repeated request may be there already, and is nobody else's.
        if (kind not in self._queues or ask.request_id is not None or ask.again) and (found := await attempt()):
            return found
        turn, until, granted = asyncio.Event(), time.monotonic() + seconds, False
        queue = self._queues.setdefault(kind, _Queue(tenant, ask.queues))
        queue.resting[turn] = None
        if len(self._queues) > KINDS_AT_ONCE and not self._lookout.is_up:
            self._lookout.look()
        if self._news.version != seen:
            turn.set()  # it changed during the attempt, or behind it
        try:
            if len(queue.resting) == 1:
                queue.poll_s = await self._poll_s(next_s)
            while (left_s := until - time.monotonic()) > 0:
                with suppress(TimeoutError):
                    rest_s = queue.poll_s if queue.may_try(turn) else REST_S
                    await asyncio.wait_for(turn.wait(), min(left_s, rest_s))
                turn.clear()  # before the attempt: what changes during it has it try again
                if self._news.stopping.is_set() or not await goes_on():
                    break
                if queue.may_try(turn):
                    if found := await attempt():
                        granted = True
                        return found
                    queue.width = 1
                    queue.poll_s = await self._poll_s(next_s)
            return []
        finally:
            queue.leave(turn, granted=granted)
            if not queue.resting and self._queues.get(kind) is queue:
                del self._queues[kind]

    async def _poll_s(self, next_s: Next) -> float:
        soon_s, usual_s = await next_s(), POLL_S * max(1.0, len(self._queues) / KINDS_AT_ONCE)
        return usual_s if soon_s is None else min(usual_s, max(POLL_LEAST_S, soon_s))

    def _stir(self) -> None:
        if len(self._queues) > KINDS_AT_ONCE and not self._news.stopping.is_set():
            self._lookout.look()
            return
        self._lookout.rest()
        for queue in self._queues.values():
            queue.stir()


def kind_of(tenant: str, ask: Claim) -> bytes:
    """The same for all that would be granted the same tasks, whoever asks, and for however long."""
    alike = msgspec.structs.replace(
        ask, holder="-", n=1, ttl_ms=None, request_id=None, call_id=None, again=False, after=None
    )  # fmt: skip
    return msgspec.json.encode((tenant, alike))
