"""Artifacts in a folder: `sha256/ab/cdef…`, written as a draft, put on disk, and renamed into place."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO, Final

from relet.artifacts import folders, verified
from relet.artifacts.failures import failed, missing, unusable
from relet.artifacts.place import NOTHING, Bytes, Collected, Path, Stored
from relet.artifacts.source import Source
from relet.artifacts.turn import turn
from relet.artifacts.uri import digest_of, given_digest, uri_of
from relet.artifacts.verified import VerifiedReader
from relet.core.border import duration_ms
from relet.core.limits import SECOND_MS
from relet.disk.syncing import sync_file, sync_path

OBJECTS: Final = "sha256"
DRAFTS: Final = "drafts"
_SHARD: Final = re.compile("[0-9a-f]{2}")
_REST: Final = re.compile("[0-9a-f]{62}")
_SAFE: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_READ: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _SAFE
_DRAFT: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE


class LocalArtifacts:
    """A folder of this machine, made by the first put. Its owner alone can read it."""

    def __init__(self, folder: Path, *, now: Callable[[], float] = time.time) -> None:
        self.folder: Final = os.path.abspath(folder)
        self.now = now
        self._settled = False

    def __repr__(self) -> str:
        return f"<artifacts in {self.folder}>"

    def put(self, source: Bytes | Path, sha256: str | None = None) -> Stored:
        wanted = None if sha256 is None else given_digest("sha256", sha256)
        with Source(source) as opened, self._telling():
            return self._put(opened, wanted)

    def _put(self, source: Source, wanted: str | None) -> Stored:
        drafts = self._make(DRAFTS)
        objects = self._make(OBJECTS)
        draft = os.path.join(drafts, f"{os.getpid()}-{os.urandom(8).hex()}")
        try:
            digest, size = self._write(draft, source)
            source.confirm(digest, wanted)
            shard = self._make(OBJECTS, digest[:2])
            with turn(self.folder, alone=False):
                # Bytes that are there already are replaced by the same ones: that mends a damaged object, and makes
                # it young again, so that no collection takes it before the commit that is to name it.
                moment = self.now()
                os.utime(draft, (moment, moment))
                os.replace(draft, os.path.join(shard, digest[2:]))
        except BaseException:
            with suppress(OSError):
                os.unlink(draft)
            raise
        sync_path(shard)
        # Whoever made the shard may have died before it was on disk.
        sync_path(objects)
        return Stored(uri_of(digest), digest, size)

    @staticmethod
    def _write(draft: str, source: Source) -> tuple[str, int]:
        """The bytes on disk under a name of their own; their digest and number are those of what was written."""
        known, size = hashlib.sha256(), 0
        descriptor = os.open(draft, _DRAFT, 0o600)
        try:
            for piece in source.pieces():
                known.update(piece)
                size += len(piece)
                rest = memoryview(piece)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
            sync_file(descriptor)
        finally:
            os.close(descriptor)
        return known.hexdigest(), size

    def open(self, uri: str) -> BinaryIO:
        return verified.opened(self._reader(uri))

    def read(self, uri: str, limit: int | None = None) -> bytes:
        return verified.whole(self._reader(uri), limit)

    def _reader(self, name: str) -> VerifiedReader:
        digest = digest_of(name)
        with self._telling():
            path = self._path(digest)
            if path is None:
                raise missing(digest, self.folder)
            try:
                descriptor = os.open(path, _READ)
            except FileNotFoundError:
                raise missing(digest, self.folder) from None
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                os.close(descriptor)
                raise unusable(path, "it is not a file; move it away and store the artifact again")
            file = io.FileIO(descriptor)

        def fill(view: memoryview) -> int:
            with self._telling():
                return file.readinto(view) or 0

        return VerifiedReader(fill, file.close, size=found.st_size, digest=digest, place=self.folder)

    def exists(self, uri: str) -> bool:
        with self._telling():
            return self._found(digest_of(uri)) is not None

    def delete(self, uri: str) -> None:
        self._remove(digest_of(uri), None)

    def list(self, older_than_s: float) -> Iterator[Stored]:
        before_s = self.now() - duration_ms("older_than_s", older_than_s) / SECOND_MS
        return self._list(before_s)

    def _list(self, before_s: float) -> Iterator[Stored]:
        for shard in self._entries(OBJECTS):
            for rest in self._entries(OBJECTS, shard) if _SHARD.fullmatch(shard) else ():
                digest = f"{shard}{rest}"
                with self._telling():
                    found = self._found(digest) if _REST.fullmatch(rest) else None
                if found is not None and found.st_mtime <= before_s:
                    yield Stored(uri_of(digest), digest, found.st_size)

    def delete_older(self, uri: str, before_s: float) -> Collected:
        return self._remove(digest_of(uri), before_s)

    def tidy(self, before_s: float) -> Collected:
        """Remove drafts that were last written to before an instant: those of puts that died."""
        removed = NOTHING
        for name in self._entries(DRAFTS):
            path = os.path.join(self.folder, DRAFTS, name)
            with self._telling():
                found = _of_file(path)
                if found is not None and found.st_mtime <= before_s:
                    with suppress(FileNotFoundError):
                        os.unlink(path)
                        removed += Collected(1, found.st_size)
        return removed

    def _remove(self, digest: str, before_s: float | None) -> Collected:
        with self._telling():
            path = self._path(digest)
            if path is None:
                return NOTHING
            # Looked at and removed in one turn: a put of the same bytes comes before it, and is seen, or after it.
            with turn(self.folder, alone=True):
                found = _of_file(path)
                if found is None or (before_s is not None and found.st_mtime > before_s):
                    return NOTHING
                os.unlink(path)
            sync_path(os.path.dirname(path))
            return Collected(1, found.st_size)

    def _found(self, digest: str) -> os.stat_result | None:
        path = self._path(digest)
        return None if path is None else _of_file(path)

    def _path(self, digest: str) -> str | None:
        """Where the bytes are if they are here; None when even their folder is not."""
        if not self._is_there(OBJECTS, digest[:2]):
            return None
        return os.path.join(self.folder, OBJECTS, digest[:2], digest[2:])

    def _is_there(self, *parts: str) -> bool:
        return all(folders.check(path) for path in self._chain(parts))

    def _make(self, *parts: str) -> str:
        """The folder of these parts, each of them made where it is missing."""
        path = self.folder
        for path in self._chain(parts):
            folders.make(path)
            folders.check(path)
        if not self._settled:
            # Another process may have made the folder, and died before it was on disk.
            sync_path(os.path.dirname(self.folder))
            sync_path(self.folder)
            self._settled = True
        return path

    def _chain(self, parts: tuple[str, ...]) -> Sequence[str]:
        return [os.path.join(self.folder, *parts[:n]) for n in range(len(parts) + 1)]

    def _entries(self, *parts: str) -> Sequence[str]:
        with self._telling():
            return os.listdir(os.path.join(self.folder, *parts)) if self._is_there(*parts) else []

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except OSError as wrong:
            raise self._failed(wrong) from wrong

    def _failed(self, wrong: OSError) -> Exception:
        if wrong.errno == errno.ELOOP:
            return unusable(
                self.folder, f"{wrong.filename} in it is a symbolic link; remove it, and store the artifact again"
            )
        if wrong.errno == errno.ENOENT and not os.path.isdir(parent := os.path.dirname(self.folder)):
            return unusable(self.folder, f"the folder around it does not exist → mkdir -p {parent}")
        return failed(wrong, self.folder)


def _of_file(path: str) -> os.stat_result | None:
    """What the file system knows of a regular file; None when there is none."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None
