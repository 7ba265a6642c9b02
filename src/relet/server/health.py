"""How the service stands: when its store last answered, last took a write, and was last looked at for news."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from relet.core.errors import Error
from relet.core.rules.inspect import Changes
from relet.server.answers import HEADERS, JSON
from relet.server.service import Service
from relet.server.upkeep import Upkeep

LOOK_EVERY_S: Final = 1.0
"""Whoever asks gets an answer of the store that is so old at most, or has it looked at; many share one look."""
LOOK_S: Final = 2.0
ANSWER_LATE_S: Final = LOOK_EVERY_S + LOOK_S
WRITE_LATE_S: Final = 20.0
"""Three rounds of upkeep, each with all the patience that it has with a store that is busy."""
NEWS_LATE_S: Final = 5.0
UNREADY: Final = 503


class Late(StrEnum):
    """What is not as it should be: the service ends, or one of its ages is too great."""

    STOPPING = "stopping"
    ANSWERED = "answered"
    WROTE = "wrote"
    LOOKED = "looked"


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What anybody may know: ages, and not a word of whose work it is, or of where it lies."""

    ready: bool
    wrong: list[Late]
    answered_ms_ago: int | None
    """Since the store was asked something that it has answered; None: it never has."""
    wrote_ms_ago: int | None
    """Since upkeep began a write that was committed."""
    looked_ms_ago: int | None
    """Since the watch for changes began a look that succeeded."""
    silent_ms: int | None
    """For how long nothing has proven that the line of news of a database is up; None where there is no such line."""


class Health:
    """Asks the store for whoever wants to know; nothing but its answers makes it young."""

    def __init__(
        self, service: Service, upkeep: Upkeep, clock: Callable[[], float] = time.monotonic
    ) -> None:  # fmt: skip
        self._service, self._upkeep, self._clock = service, upkeep, clock
        self._answered_at = float("-inf")
        self._look: asyncio.Task[None] | None = None

    def answered(self, asked_at: float) -> None:
        """The store has answered what it was asked then."""
        self._answered_at = max(self._answered_at, asked_at)

    def standing(self) -> Standing:
        """As far as is known now."""
        now, news, upkeep = self._clock(), self._service.news, self._upkeep
        late = {
            Late.STOPPING: news.stopping.is_set(),
            Late.ANSWERED: now - self._answered_at > ANSWER_LATE_S,
            # Counted from when they began where they have done nothing yet, which is no success, and no failure.
            Late.WROTE: _is_late(now, upkeep.unwritten_since, WRITE_LATE_S),
            Late.LOOKED: _is_late(now, news.unlooked_since, NEWS_LATE_S),
        }
        wrong = [what for what, is_so in late.items() if is_so]
        return Standing(
            ready=not wrong, wrong=wrong, answered_ms_ago=_ms_since(now, self._answered_at),
            wrote_ms_ago=_ms_since(now, upkeep.wrote_at), looked_ms_ago=_ms_since(now, news.looked_at),
            silent_ms=_ms_since(now, news.silent_since),
        )  # fmt: skip

    def unwritten_ms(self) -> int | None:
        """How long upkeep has written nothing, also where it never has: over a standby nothing else would grow."""
        return _ms_since(self._clock(), self._upkeep.unwritten_since)

    def unlooked_ms(self) -> int | None:
        """How long the watch for changes has not looked, likewise."""
        return _ms_since(self._clock(), self._service.news.unlooked_since)

    async def healthz(self, _request: Request) -> Response:
        """Does the store answer. One that takes no writes for a while is no reason to start the service anew."""
        standing = await self._looked()
        return _told(standing, well=Late.ANSWERED not in standing.wrong)

    async def readyz(self, _request: Request) -> Response:
        """May requests be sent here."""
        standing = await self._looked()
        return _told(standing, well=standing.ready)

    async def _looked(self) -> Standing:
        if self._clock() - self._answered_at >= LOOK_EVERY_S:
            if self._look is None or self._look.done():
                self._look = asyncio.create_task(self._look_at_store())
            await asyncio.wait([self._look], timeout=LOOK_S)
        return self.standing()

    async def _look_at_store(self) -> None:
        began = self._clock()
        try:
            backend = self._service.backend
            await self._service.in_thread(lambda: backend.call(Changes(), patience_ms=int(LOOK_S * 1_000)))
        except Error:
            return
        self.answered(began)


def _is_late(now: float, since: float | None, late_s: float) -> bool:
    return since is not None and now - since > late_s


def _ms_since(now: float, then: float | None) -> int | None:
    """Never less than it is."""
    return None if then is None or then == float("-inf") else int((now - then) * 1_000) + 1


def _told(standing: Standing, *, well: bool) -> Response:
    return Response(
        msgspec.json.encode(standing), status_code=200 if well else UNREADY, media_type=JSON, headers=HEADERS
    )
