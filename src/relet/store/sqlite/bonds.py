"""Locks on files beside the store: while one is held its process lives, and once it is free that process is gone.

The kernel frees a lock when the last descriptor is closed that shares it: those of forked children, and of children
that were handed it, count too. A stopped process holds its locks.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

from relet.core.bond import LOCK_VARIABLE, Bond
from relet.core.tx import HolderRow
from relet.disk.locking import lock

INFIX: Final = "-holder-"
STRAY_S: Final = 60.0
"""A file this old that no row names was left by a process that died between the two."""
NAME_BYTES: Final = 12


class Proof(StrEnum):
    """What a lock says of its process: nothing, where its file is gone, is another one, or is of another boot."""

    LIVES = "lives"
    DEAD = "dead"
    NOTHING = "nothing"


class Bonds:
    """The locks that this process holds on one store, and a look at those of others."""

    def __init__(self, path: Path | None = None, boot_id: str = "") -> None:
        self._path = path
        self.boot_id = boot_id
        self._known: dict[str, bool] = {}
        self.mine: Bond | None = None
        self.pid = os.getpid()
        self._open: dict[str, int] = {}
        self._look, self._looker = threading.Lock(), os.getpid()
        self._bind, self._binder = threading.Lock(), os.getpid()
        self._closed = False
        self.rows: list[HolderRow] = []
        self.version: int | None = None
        """Of the file, when the rows were read."""

    def make(self) -> tuple[Bond, HolderRow] | None:
        """A fresh lock, held from now on until this process ends; None where there can be none."""
        # Without a boot id nothing tells whether a free lock has ever been taken since the machine started.
        if self._path is None or not self.boot_id or sys.platform == "win32":
            return None
        name = os.urandom(NAME_BYTES).hex()
        try:
            descriptor = os.open(self._file(name), os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:
            return None
        try:
            if lock(descriptor, 0):
                if self.mine is not None:
                    self._known[self.mine.lock] = True  # of the process that forked this one
                # Never closed by us: only the end of the process may free it.
                self.mine, self.pid = Bond(name, descriptor), os.getpid()
                return self.mine, HolderRow(name, os.fstat(descriptor).st_ino, self.boot_id)
        except OSError:
            pass  # a file system without such locks
        os.close(descriptor)
        self.remove(name)
        return None

    @contextlib.contextmanager
    def binding(self) -> Iterator[None]:
        """Make or give up this process's own lock: nobody else is answered one that may come to nothing."""
        if self._binder != os.getpid():
            self._binder, self._bind = os.getpid(), threading.Lock()  # a fork may have caught it held
        with self._bind:
            yield

    def unmake(self) -> None:
        """Let go of this process's own lock, which nothing is bound to."""
        assert self.mine is not None, "made before"
        (name, descriptor), self.mine = self.mine, None
        self.remove(name)
        os.close(descriptor)

    def is_ours(self, name: str) -> bool:
        """Does this process hold the lock: its own, one of the process that forked it, or one it was handed."""
        if self.mine is not None and self.mine.lock == name:
            return True
        if name not in self._known:
            self._known[name] = self._is_inherited(name)
        return self._known[name]

    def own_locks(self) -> list[str]:
        """The locks that are known to be ours."""
        mine = [] if self.mine is None else [self.mine.lock]
        return mine + [name for name, ours in self._known.items() if ours]

    def vouch(self, name: str) -> None:
        """Count the lock as ours."""
        self._known[name] = True

    @contextlib.contextmanager
    def looking(self) -> Iterator[bool]:
        """Look at others for a block; False while another thread does, which finds whatever is to be found."""
        if self._looker != os.getpid():
            # A fork may have caught the lock held, and a descriptor shared with the parent is no look of our own.
            for name in list(self._open):
                self.drop(name)
            self._looker, self._look = os.getpid(), threading.Lock()
        if not self._look.acquire(blocking=False):
            yield False
            return
        try:
            yield True
        finally:
            if self._closed:
                self.keep_only(set())
            self._look.release()

    def close(self) -> None:
        """Look at nobody any more; a lock of this process's own that is needed is kept until its end."""
        self._closed = True
        with self.looking():
            pass  # whoever is looking closes what is open

    def proof(self, row: HolderRow) -> Proof:
        """What the lock says; a proven death stays proven until the lock is dropped, and after it."""
        if row.boot_id != self.boot_id:
            return Proof.NOTHING
        try:
            if row.lock not in self._open:
                self._open[row.lock] = os.open(self._file(row.lock), os.O_RDWR | os.O_CLOEXEC)
                if os.fstat(self._open[row.lock]).st_ino != row.inode:
                    return Proof.NOTHING
            # Shared: others may be looking at the same instant, and each finds what is true.
            return Proof.DEAD if lock(self._open[row.lock], 0, alone=False) else Proof.LIVES
        except FileNotFoundError:
            return Proof.NOTHING
        except OSError:
            return Proof.LIVES  # nobody may say so, but nothing is thrown away either

    def drop(self, name: str) -> None:
        """Look at it no longer."""
        if (descriptor := self._open.pop(name, None)) is not None:
            os.close(descriptor)

    def keep_only(self, names: set[str]) -> None:
        """Look at no lock that no row names any more."""
        for name in [name for name in self._open if name not in names]:
            self.drop(name)

    def remove(self, name: str) -> None:
        """Remove a lock's file, if it is there."""
        with contextlib.suppress(OSError):
            os.unlink(self._file(name))

    def remove_strays(self, known: set[str]) -> None:
        """Remove old files that no row names and nobody holds."""
        assert self._path is not None, "a lock has a file"
        prefix, files = f"{self._path.name}{INFIX}", []
        with contextlib.suppress(OSError):  # a folder that may not be listed
            # Not by a pattern: the name of a store may be one.
            files = [file for file in self._path.parent.iterdir() if file.name.startswith(prefix)]
        for file in files:
            name = file.name.removeprefix(prefix)
            with contextlib.suppress(OSError):
                if name not in known and time.time() - file.stat().st_mtime > STRAY_S:
                    self._remove_if_free(file)

    @staticmethod
    def _remove_if_free(file: Path) -> None:
        descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
        try:
            if lock(descriptor, 0):
                os.unlink(file)
        finally:
            os.close(descriptor)

    def _is_inherited(self, name: str) -> bool:
        number, _, inherited = os.environ.get(LOCK_VARIABLE, "").partition(":")
        if inherited != name or self._path is None:
            return False
        try:
            return os.path.samestat(os.fstat(int(number)), os.stat(self._file(name)))
        except (OSError, ValueError):
            return False  # closed on the way, as most languages do with what a child does not ask for

    def _file(self, name: str) -> str:
        return f"{self._path}{INFIX}{name}"
