"""A board in shared memory: what a process beside this one has heard of each lease it renews.

One writer, one reader, and a number before and after each entry: one that was read while it was being written
is read again. Unlike a pipe it never fills up, however long the reader does not run.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import tempfile
from typing import Final, NamedTuple, Self

ENTRY: Final = struct.Struct("<qqdd??6xq")
ENTRIES: Final = 4_096
"""More than a worker has slots."""


class Entry(NamedTuple):
    """The last answer to a renewal of a token, which was asked for at `sent_ms` of the holder's clock."""

    token: int
    sent_ms: float
    left_ms: float
    capped: bool
    refused: bool


class Board:
    """The entries, by number."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, ENTRY.size * ENTRIES)
        self._turn = 0

    @classmethod
    def make(cls) -> Self:
        """An empty one, in a file without a name."""
        descriptor, path = tempfile.mkstemp(prefix="relet-board-")
        os.unlink(path)
        os.ftruncate(descriptor, ENTRY.size * ENTRIES)
        return cls(descriptor)

    def write(self, n: int, entry: Entry) -> None:
        """Put up the newest entry; nothing, once it is closed."""
        self._turn += 1
        # In one copy; the number at either end tells a reader whether it saw the whole of it.
        with contextlib.suppress(ValueError):
            self._memory[n * ENTRY.size : (n + 1) * ENTRY.size] = ENTRY.pack(self._turn, *entry, self._turn)

    def read(self, n: int) -> Entry | None:
        """The entry, None when there is none, when it is being written at this instant, and once it is closed."""
        try:
            before, token, sent_ms, left_ms, capped, refused, after = ENTRY.unpack_from(self._memory, n * ENTRY.size)
        except ValueError:
            return None
        return Entry(token, sent_ms, left_ms, capped, refused) if before == after and before else None

    def close(self) -> None:
        """Let go of the memory."""
        if not self._memory.closed:
            self._memory.close()
            os.close(self.descriptor)
