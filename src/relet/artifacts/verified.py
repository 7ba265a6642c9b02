"""Bytes that are checked while they are read: the last of them come only when all of them were right."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, Final

from relet.artifacts.failures import damaged
from relet.artifacts.source import PIECE_BYTES
from relet.core.border import invalid
from relet.core.limits import ARTIFACT_WHOLE_BYTES_MAX

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Fill = Callable[[memoryview], int]
"""Reads into a buffer; answers how many bytes, 0 at the end."""


class VerifiedReader(io.RawIOBase):
    """A stream of `size` bytes that raises, instead of handing out its last piece, when its SHA-256 is another.

    Once it has raised it raises for ever: the reader must not take a second try for the end of the file.
    """

    def __init__(self, fill: Fill, close: Callable[[], None], *, size: int, digest: str, place: str) -> None:
        super().__init__()
        self.size: Final = size
        self._fill, self._close = fill, close
        self._digest, self._place = digest, place
        self._hash = hashlib.sha256()
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        if not view:
            return 0
        n = self._fill(view)
        self._hash.update(view[:n])
        self._read += n
        # At the size, not at the end: a reader that knows the size asks for no byte beyond it.
        if (n == 0 or self._read >= self.size) and (found := self._hash.hexdigest()) != self._digest:
            view[:n] = bytes(n)
            raise damaged(self._digest, found, self._place)
        return n

    def readall(self) -> bytes:
        # One buffer of the right size, where io.RawIOBase would join pieces of 8 KiB.
        whole, filled = bytearray(self.size - self._read), 0
        with memoryview(whole) as room:
            while filled < len(whole) and (n := self.readinto(room[filled : filled + PIECE_BYTES])):
                filled += n
        self.readinto(bytearray(1))  # an empty one has not been judged yet, and one that grew is wrong
        return bytes(whole)

    def close(self) -> None:
        if not self.closed:
            self._close()
        super().close()


def opened(reader: VerifiedReader) -> BinaryIO:
    """A small artifact checked and in memory, a larger one as a buffered stream."""
    if reader.size > ARTIFACT_WHOLE_BYTES_MAX:
        return io.BufferedReader(reader, PIECE_BYTES)
    with reader:
        return io.BytesIO(reader.readall())


def whole(reader: VerifiedReader, limit: int | None) -> bytes:
    """All of it, unless that is more than `limit`."""
    with reader:
        if limit is not None and reader.size > limit:
            raise invalid("limit", f"the artifact has {reader.size:,} bytes, more than {limit:,}; open it instead")
        return reader.readall()
