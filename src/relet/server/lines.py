"""Connections as the service keeps them: one on which nothing is asked does not stay, and gives way to who comes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

from relet.server.packets import Packets

IDLE_S: Final = 30
"""Without a whole request under way: half of one that never ends is none."""
CONNECTIONS_MAX: Final = 4_000
ROOM: Final = 200
"""Beside those that ask: places for who comes, so that nobody is refused because others are silent."""


HANG_UP: Final = "relet.hang_up"
"""The extension by which an answer that nobody takes ends its connection."""


class Line(H11Protocol):
    """One connection. `uvicorn` bounds the time between requests alone, and not that of a request's head."""

    idle: OrderedDict[Line, float]
    """Those on which nothing is asked, and since when; the one that has rested longest is the first."""
    is_timed: bool
    """Is a timer set, one for all of them: one for each would be set and cancelled with each request."""

    def connection_made(self, transport: Any) -> None:
        packets: Any = Packets(transport, self.loop)
        self._packets: Packets = packets
        super().connection_made(packets)
        self._rest()
        while len(self.connections) > CONNECTIONS_MAX - ROOM and self.idle:
            self._oldest().hang_up()

    def data_received(self, data: bytes) -> None:
        self._packets.send_now()
        super().data_received(data)

    def eof_received(self) -> None:
        self._packets.send_now()  # the loop closes behind this
        super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wake()
        super().connection_lost(exc)
        # What was asked last names this line, which names it, and so does a timer where the line was cut: it would
        # wait for a collection of all that there is.
        self._unset_keepalive_if_required()
        if self.cycle is not None:
            self.cycle.scope.get("extensions", {}).pop(HANG_UP, None)

    def handle_events(self) -> None:
        super().handle_events()
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._wake()
            # To close would wait until all that was said is taken, which a silent peer never does.
            cycle.scope.setdefault("extensions", {})[HANG_UP] = self.hang_up

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and self.cycle.response_complete:  # else the next one is asked already
            self._rest()

    def hang_up(self) -> None:
        """Nobody hears more of it: nothing was asked, or what was answered is not taken."""
        self._packets.send_now()  # an answer of this very turn
        self._wake()
        self.connections.discard(self)
        self.transport.abort()

    def _oldest(self) -> Line:
        return next(iter(self.idle))

    def _rest(self) -> None:
        self._wake()
        self.idle[self] = self.loop.time()
        if not self.is_timed:
            self._look_later(IDLE_S)

    def _wake(self) -> None:
        self.idle.pop(self, None)

    def _look_later(self, seconds: float) -> None:
        type(self).is_timed = True
        self.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        type(self).is_timed = False
        while self.idle:
            left_s = self.idle[self._oldest()] + IDLE_S - self.loop.time()
            if left_s > 0:
                self._look_later(left_s)
                return
            self._oldest().hang_up()


def line_class() -> type[Line]:
    """For one server, whose connections give way to each other and to nobody else's."""
    return type("ServedLine", (Line,), {"idle": OrderedDict(), "is_timed": False})
