"""Bytes that come in pieces, read into buffers of any size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext


class Pieces:
    """The pieces of an answer, cut to the buffers that they are read into; `telling` is around each that comes."""

    def __init__(
        self, pieces: Iterator[bytes], telling: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        self._pieces: Iterator[bytes] = pieces
        self._telling = telling
        self._left = memoryview(b"")

    def fill(self, view: memoryview) -> int:
        """How many bytes were read; 0 at the end."""
        while not self._left:
            with self._telling():
                piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = memoryview(piece)
        n = min(len(view), len(self._left))
        view[:n], self._left = self._left[:n], self._left[n:]
        return n

    def close(self) -> None:
        """No more of them."""
        self._pieces, self._left = iter(()), memoryview(b"")
