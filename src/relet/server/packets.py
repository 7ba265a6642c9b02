"""What is written within one turn of the loop goes out as one packet: the head of an answer, and its body."""

from __future__ import annotations

import asyncio
from typing import Any, Final

JOINED_BYTES_MAX: Final = 16 << 10
"""More goes out at once, so that whoever writes learns when it is not taken."""


class Packets:
    """A transport as a protocol writes to it, which says the head and the body of an answer one after the other.

    Each would be a call of the system for this side, and a turn of its loop for the other.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._written: list[bytes] = []
        self._bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Say it by the end of this turn."""
        if not data:
            return
        if not self._written:
            self._loop.call_soon(self.send_now)
        self._written.append(data)
        self._bytes += len(data)
        if self._bytes > JOINED_BYTES_MAX:
            self.send_now()

    def close(self) -> None:
        """Say what was written, and no more."""
        self.send_now()
        self._transport.close()

    def send_now(self) -> None:
        """Say what was written; before something that may end the connection, for nothing is said after that."""
        written, self._written, self._bytes = self._written, [], 0
        if written and not self._transport.is_closing():
            self._transport.write(b"".join(written))
