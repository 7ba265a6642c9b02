"""Tokens that no restore re-issues: a mark outside of what is backed up, and a lock that tells who is first.

The side file `<state folder>/<store id>` holds the epoch and a mark; every token up to the mark may be in use.
It is on disk before a token of its block is given out. The first process that opens a store after nobody had it
open burns the rest of the block, since a restore inside one block would go unseen otherwise.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import NamedTuple

from relet.core.errors import Unavailable

if sys.platform != "win32":
    import fcntl


NO_ROOM = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
"""The disk is full, or this user's share of it."""


class Mark(NamedTuple):
    """No token beyond `n` of this epoch has been given out."""

    epoch: int
    n: int


class SideFile:
    """The mark of one store, kept apart from it."""

    def __init__(self, folder: Path, store_id: str) -> None:
        self.path = folder / store_id

    def read(self) -> Mark | None:
        """What was written last; None when there is nothing (a new machine, or a lost folder)."""
        try:
            epoch, n = self.path.read_text(encoding="ascii").split()
            return Mark(int(epoch), int(n))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as wrong:
            raise self._unusable(wrong) from wrong

    def write(self, mark: Mark) -> None:
        """On disk when this returns, whole or not at all."""
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
                file.write(f"{mark.epoch} {mark.n}\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self.path)
            _sync_folder(self.path.parent)
        except OSError as wrong:
            if wrong.errno in NO_ROOM:
                raise Unavailable(
                    f"{self.path}, which marks the tokens that were given out, cannot be written ({wrong.strerror}); "
                    "nothing was claimed. Free some space and try again",
                    code="RELET-FULL", path=str(self.path),
                ) from wrong  # fmt: skip
            raise self._unusable(wrong) from wrong

    def _unusable(self, wrong: Exception) -> Unavailable:
        return Unavailable(
            f"the file of token marks {self.path} cannot be used ({wrong}); without it a restored backup could give "
            "out tokens again. Make its folder writable, or set RELET_STATE_DIR to one that lasts",
            code="RELET-STATE-DIR", path=str(self.path),
        )  # fmt: skip


class OpenLock:
    """A file beside the store that every process with the store open holds shared; one byte says "burn first"."""

    def __init__(self, path: Path) -> None:
        try:
            self.descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as wrong:
            if wrong.errno in NO_ROOM:
                raise _no_room(path, wrong) from wrong
            raise Unavailable(
                f"{path}, which tells who has the store open, cannot be opened ({wrong.strerror}); make its folder "
                "writable for every user of the store",
                code="RELET-CANNOT-OPEN", path=str(path),
            ) from wrong  # fmt: skip
        if self._is_first():
            try:
                os.pwrite(self.descriptor, b"1", 0)
            except OSError as wrong:
                os.close(self.descriptor)
                raise _no_room(path, wrong) from wrong
        if sys.platform != "win32":
            fcntl.flock(self.descriptor, fcntl.LOCK_SH)

    def _is_first(self) -> bool:
        if sys.platform == "win32":  # pragma: no cover - no flock: burning too often costs numbers only
            return True
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    @property
    def must_burn(self) -> bool:
        """Was the store closed by everyone since the last token was given out."""
        return os.pread(self.descriptor, 1, 0) == b"1"

    def burnt(self) -> None:
        """The rest of the block has been given up."""
        os.pwrite(self.descriptor, b"0", 0)

    def close(self) -> None:
        os.close(self.descriptor)


def _no_room(path: Path, wrong: OSError) -> Unavailable:
    return Unavailable(
        f"{path}, which tells who has the store open, cannot be written ({wrong.strerror}); nothing was changed. "
        "Free some space and try again",
        code="RELET-FULL", path=str(path),
    )  # fmt: skip


def _sync_folder(folder: Path) -> None:
    if sys.platform == "win32":  # pragma: no cover - folders cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
