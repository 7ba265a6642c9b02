"""The trace of one run: what its processes asked, were answered and called, in one file that outlives them.

The store does not write it. Lines are appended by one write each, which a kill can prevent and cannot tear; nothing
is synced, since what is killed here is processes and never the machine.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import NamedTuple

import msgspec

from relet.client.durable.sight import Sight


class Ack(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that the store said it had written, for the lease of `token`."""

    verb: str
    task_id: str = ""
    token: int = 0
    name: str = ""
    slot: str = ""
    """The slot of a step, the id of an effect or of a child."""
    n: int = 0
    """The version of a checkpoint, the try of an effect."""
    digest: str = ""
    """Of the value, empty where it is kept as a file; the state of an effect that was ended."""


class Granted(msgspec.Struct, frozen=True):
    """A lease that a claim was given."""

    task_id: str
    token: int


class Committed(msgspec.Struct, frozen=True, tag="committed", omit_defaults=True):
    """A request that was committed; the n-th of the run."""

    n: int
    pid: int
    verb: str
    name: str
    since: int
    """How long the trace was when the request was sent."""
    acks: list[Ack] = []
    granted: list[Granted] = []


class Struck(msgspec.Struct, frozen=True, tag="struck"):
    """A fault of the plan, done now."""

    pid: int
    fault: str


class Seen(msgspec.Struct, frozen=True, tag="seen"):
    """What the witness in a process saw."""

    pid: int
    sight: Sight
    wall_ms: int
    mono_ms: int


class Settled(msgspec.Struct, frozen=True, tag="settled"):
    """An unknown effect that was reconciled from outside."""

    effect: str
    outcome: str


Line = Committed | Struck | Seen | Settled
_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


class Placed(NamedTuple):
    """A line, and where in the trace it begins."""

    at: int
    line: Line


class Trace:
    """The file, open for appending by any number of processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._lock = threading.Lock()
        self.commits = sum(isinstance(placed.line, Committed) for placed in read(path))
        """How many commits the run has seen so far."""

    def size(self) -> int:
        """How long it is now."""
        return os.fstat(self._fd).st_size

    def add(self, line: Line) -> None:
        """Append a line."""
        os.write(self._fd, _ENCODER.encode(line) + b"\n")

    def commit(self, verb: str, name: str, since: int, acks: list[Ack], granted: list[Granted]) -> int:
        """Append a commit; which one of the run it is."""
        with self._lock:
            self.commits += 1
            n = self.commits
            self.add(Committed(n, os.getpid(), verb, name, since, acks, granted))
        return n

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)


def read(path: Path) -> list[Placed]:
    """All lines so far."""
    placed, at = [], 0
    for text in path.read_bytes().splitlines(keepends=True):
        placed.append(Placed(at, _DECODER.decode(text)))
        at += len(text)
    return placed
