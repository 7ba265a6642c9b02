"""What a worker and its children say to each other: one JSON value a line, over a socket."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import msgspec

from relet.core.model import End


class Setup(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The first word to a child: where the store is, and where code is found."""

    url: str
    tenant: str
    lock: str | None
    board: int
    n: int
    path: list[str]
    logs: bool
    """Does the worker log; then so does the child, to stderr."""


class Begin(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Run this handler under this lease, whose time left was true at `sent_ms` of the machine's own clock."""

    module: str
    main: str | None
    name: str
    kind: str
    grant: msgspec.Raw
    sent_ms: float
    silence_ms: int | None
    draining: bool


class Stop(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The run of this token must stop, and why."""

    token: int
    cause: msgspec.Raw


class Drain(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The worker is about to end."""


class Moved(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Something has moved under the lease of this token."""

    token: int


class How(StrEnum):
    """What an attempt came to."""

    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    PARKED = "parked"


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """How the attempt of this token ended: a result, the arguments of `fail`, an error, or the name of a wait."""

    token: int
    how: How
    what: msgspec.Raw
    ended: End | None = None
    """The verb by which the handler itself ended the lease, if it did."""


CUT_OFF: Final = 76
"""The exit code of a child that cannot tell the end of an attempt: a protocol error, to sysexits.h."""
Word = Setup | Begin | Stop | Drain | Moved | Finished
_DECODER = msgspec.json.Decoder(Word)
_ENCODER = msgspec.json.Encoder()


class Line:
    """One end of the socket; may be spoken into from any thread of the process that made it, and by no fork of it."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._file = _file_of(end)

    @property
    def is_forked(self) -> bool:
        """Is this process a copy of the one whose line it is."""
        return os.getpid() != self._pid

    def say(self, word: Word) -> bool:
        """Say it, or answer that it cannot be said: to one that is gone, which whoever listens hears.

        Nothing goes into what bears its number by now, once somebody has closed all descriptors there were.
        """
        if self.is_forked:
            return False
        with self._lock, contextlib.suppress(OSError):
            if _file_of(self._socket) == self._file:
                self._socket.sendall(_ENCODER.encode(word) + b"\n")
                return True
        return False

    def say_beside(self, word: Word) -> None:
        """Say it in a thread of its own: who does not read may be spoken to already, and keeps whoever says more."""
        threading.Thread(target=self.say, args=(word,), name="relet-word", daemon=True).start()

    def words(self) -> Iterator[Word]:
        """What the other end says, until it is gone."""
        rest = b""
        while True:
            try:
                said = self._socket.recv(1 << 16)
            except OSError:
                return
            if not said:
                return
            *lines, rest = (rest + said).split(b"\n")
            for line in lines:
                yield _DECODER.decode(line)

    def hang_up(self) -> None:
        """End it for whoever listens here, though others may hold the other end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give it back."""
        self._socket.close()


def _file_of(end: socket.socket) -> tuple[int, int]:
    found = os.fstat(end.fileno())
    return found.st_dev, found.st_ino
