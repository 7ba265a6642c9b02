"""The program that renews leases beside another process; its arguments: url, tenant, board, lock, and that one's pid.

It is told by lines of JSON what to keep, drop, and what has moved. It ends with its parent, and is silent while the
parent is stopped, traced or dead: a heartbeat says that somebody is there.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sys
from typing import Any

import msgspec

from relet.client.beside.board import Board, Entry
from relet.client.beside.parent import Parent
from relet.client.clock import SystemHolderClock
from relet.connect import backend_of
from relet.core.backend import Backend
from relet.core.errors import Error, LeaseLost
from relet.core.model import Handle
from relet.core.rules.renew import Renew

PATIENCE_SHARE = 1 / 6
LOOK_EVERY_S = 0.5


class Kept(msgspec.Struct):
    """One lease to renew."""

    n: int
    handle: Handle
    ttl_ms: int
    interval_ms: float
    silence_ms: float | None
    due_ms: float
    moved_ms: float


class Said(msgspec.Struct):
    """One line of the parent's."""

    verb: str
    n: int
    handle: Handle | None = None
    ttl_ms: int = 0
    interval_ms: float = 0
    silence_ms: float | None = None
    wait_ms: float = 0
    silent_ms: float = 0


class Beating:
    """All leases of the parent that are kept from here."""

    def __init__(self, backend: Backend, board: Board, parent: Parent) -> None:
        self._backend, self._board, self._parent = backend, board, parent
        self._clock = SystemHolderClock()
        self._kept: dict[int, Kept] = {}
        self._read = msgspec.json.Decoder(Said).decode
        self.ended = False
        """The parent has said that this is all."""

    def hear(self, line: bytes) -> None:
        """Take in what the parent says."""
        said = self._read(line)
        now_ms = self._clock.fast_ms()
        if said.verb == "keep" and said.handle is not None:
            self._kept[said.n] = Kept(
                said.n, said.handle, said.ttl_ms, said.interval_ms, said.silence_ms, now_ms + said.wait_ms,
                now_ms - said.silent_ms,
            )  # fmt: skip
        elif said.verb == "end":
            self.ended = True
        elif said.verb == "drop":
            self._kept.pop(said.n, None)
        elif said.n in self._kept:
            self._kept[said.n].moved_ms = now_ms

    def pause_s(self) -> float:
        """Until the next beat."""
        wait_ms = min((one.due_ms for one in self._kept.values()), default=float("inf")) - self._clock.fast_ms()
        return max(0.0, min(LOOK_EVERY_S, wait_ms / 1_000))

    def beat(self) -> None:
        """Renew what is due, if the parent runs and the work moves."""
        now_ms = self._clock.fast_ms()
        due = [one for one in self._kept.values() if one.due_ms <= now_ms]
        if not due:
            return
        moving = [one for one in due if one.silence_ms is None or now_ms - one.moved_ms < one.silence_ms]
        for one in due:
            one.due_ms = now_ms + one.ttl_ms / 12  # look again soon, unless the beat below is answered
        if not moving or not self._parent.runs():
            return
        patience_ms = max(1, int(min(one.ttl_ms for one in moving) * PATIENCE_SHARE))
        try:
            answers = self._backend.call(Renew(handles=[one.handle for one in moving]), patience_ms=patience_ms)
        except Error as wrong:
            sys.stderr.write(f"relet: a heartbeat from beside had no answer: {wrong}\n")
            return
        for one, answer in zip(moving, answers, strict=True):
            self._take(one, answer, now_ms)

    def _take(self, one: Kept, answer: Any, sent_ms: float) -> None:
        if isinstance(answer, Error):
            if isinstance(answer, LeaseLost):
                # The parent asks for the reason itself; to be told twice costs nothing.
                self._board.write(one.n, Entry(one.handle.token, sent_ms, 0.0, False, True))
                self._kept.pop(one.n, None)
            return
        self._board.write(one.n, Entry(one.handle.token, sent_ms, answer.left_ms, answer.capped, False))
        one.due_ms = sent_ms + one.interval_ms
        if answer.capped:
            self._kept.pop(one.n, None)


def main() -> None:
    """Beat until the parent is gone."""
    url, tenant, board, lock, parent_pid = sys.argv[1:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a terminal sends them to all; the parent says when this one ends
    parent = Parent(int(parent_pid))
    backend = backend_of(url, tenant, "relet")
    if lock:
        backend.vouch(lock)
    beating = Beating(backend, Board(int(board)), parent)
    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ, "said")
    if parent.descriptor is not None:
        selector.register(parent.descriptor, selectors.EVENT_READ, "gone")
    os.write(1, b"r")
    os.close(1)
    rest = b""
    while True:
        for key, _ in selector.select(beating.pause_s()):
            said = os.read(0, 1 << 16) if key.data == "said" else b""
            if not said:
                return
            *lines, rest = (rest + said).split(b"\n")
            for line in lines:
                beating.hear(line)
        if beating.ended or parent.is_gone():
            return
        beating.beat()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
