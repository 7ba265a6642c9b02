"""What is to be stored: bytes, or a file at a path, read piece by piece and refused when it cannot be stored."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final, Self

from relet.core.border import invalid, shown
from relet.core.limits import ARTIFACT_BYTES_MAX

PIECE_BYTES: Final = 1 << 20
# A FIFO would be waited for, without this; Windows has neither.
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_KINDS: Final = (
    (stat.S_ISDIR, "a folder; pack it into one file, or store its files one by one"),
    (stat.S_ISFIFO, "a FIFO; write what comes out of it into a file first"),
    (stat.S_ISSOCK, "a socket; write what comes out of it into a file first"),
    (lambda _mode: True, "a device; copy what you need of it into a file first"),
)


class Source:
    """The bytes to store, opened; as a context manager it closes what it opened."""

    def __init__(self, given: Any) -> None:
        self._data: bytes | None = None
        self._descriptor = -1
        if isinstance(given, bytes | bytearray | memoryview):
            # A copy of what can change: the bytes that are hashed must be the bytes that are written.
            self._data = bytes(given)
            self.size = len(self._data)
            self.told = "the bytes"
        else:
            self._descriptor, self.size = _opened(given)
            self.told = shown(given)
        if self.size > ARTIFACT_BYTES_MAX:
            self.close()
            raise self.too_large()

    def pieces(self) -> Iterator[bytes | memoryview]:
        """From the first byte on, each time; a file that grows meanwhile is followed to its end, up to the limit."""
        return self._of_bytes(self._data) if self._data is not None else self._of_file()

    def whole(self) -> bytes:
        """All of it at once, for what is known to be small."""
        return self._data if self._data is not None else b"".join(self.pieces())

    def known(self) -> tuple[str, int]:
        """The digest and number of bytes of a first reading: the name must be known before anything is written."""
        known, size = hashlib.sha256(), 0
        for piece in self.pieces():
            known.update(piece)
            size += len(piece)
        return known.hexdigest(), size

    def unchanged(self, digest: str, size: int) -> Iterator[bytes | memoryview]:
        """The bytes of a second reading; raises, which ends an upload without an object, when they are others."""
        known, sent = hashlib.sha256(), 0
        for piece in self.pieces():
            known.update(piece)
            sent += len(piece)
            if sent > size or (sent == size and known.hexdigest() != digest):
                raise self.changed()
            yield piece
        if sent != size:
            raise self.changed()

    def confirm(self, digest: str, wanted: str | None) -> None:
        """Refuse bytes that are not those that the caller meant; without `wanted`, any are."""
        if wanted not in (None, digest):
            raise invalid("sha256", f"{self.told} has the SHA-256 {digest}, not {wanted}; nothing was stored")

    def too_large(self) -> Exception:
        """The refusal of more than an artifact may have."""
        return invalid(
            "source",
            f"{self.told} has more than {ARTIFACT_BYTES_MAX:,} bytes, the most that one artifact may have; "
            "store it in parts",
        )

    def changed(self) -> Exception:
        """The refusal of a file that another read found different."""
        return invalid("source", f"{self.told} changed while it was stored; let its writer finish, or copy it first")

    @staticmethod
    def _of_bytes(data: bytes) -> Iterator[memoryview]:
        view = memoryview(data)
        for start in range(0, len(data), PIECE_BYTES):
            yield view[start : start + PIECE_BYTES]

    def _of_file(self) -> Iterator[bytes]:
        total = 0
        try:
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            while piece := os.read(self._descriptor, PIECE_BYTES):
                total += len(piece)
                if total > ARTIFACT_BYTES_MAX:
                    raise self.too_large()
                yield piece
        except OSError as wrong:
            raise invalid("source", f"{self.told} cannot be read: {wrong.strerror}") from wrong

    def close(self) -> None:
        """Close what was opened; again is fine."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()


def _opened(given: Any) -> tuple[int, int]:
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str):
        raise invalid(
            "source", f"{shown(given)} is neither bytes nor a path; encode text, or save it as a file first"
        )
    try:
        descriptor = os.open(given, _FLAGS)
    except OSError as wrong:
        raise _unopened(given, wrong) from wrong
    except ValueError as wrong:  # a NUL, or text that no file system can keep
        raise invalid("source", f"{shown(given)} is no path ({wrong}); to store this text, encode it") from wrong
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode):
        return descriptor, found.st_size
    os.close(descriptor)
    raise _special(given, found.st_mode)


def _special(given: Any, mode: int) -> Exception:
    what = next(text for is_kind, text in _KINDS if is_kind(mode))
    return invalid("source", f"{shown(given)} is {what}")


def _unopened(given: Any, wrong: OSError) -> Exception:
    if wrong.errno in (errno.ENOENT, errno.ENOTDIR):
        return invalid("source", f"there is no file {shown(given)}; text is taken for a path, so encode what is none")
    if wrong.errno == errno.ENXIO:  # a socket, or a device without its driver
        return invalid("source", f"{shown(given)} is not a file; write what comes out of it into one first")
    return invalid("source", f"{shown(given)} cannot be opened: {wrong.strerror}")
