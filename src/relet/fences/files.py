"""A fence for files in a folder on a local disk: a new version replaces the old one only under a token that is good.

The block writes a temporary file and holds nothing. At its end the token is compared, and the file renamed, under an
exclusive lock of the kernel (flock), which ends with its process. So a holder that is stopped in its block blocks
nobody, and one that is stopped in the instant of the rename blocks its successor until it goes on or ends.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from relet.core import border, limits
from relet.core.errors import DAMAGED, Conflict, NotFound, OutcomeUnknown, Unavailable
from relet.core.holding import check_held
from relet.disk.file_systems import kind_of, refuse_network
from relet.disk.locking import lock
from relet.disk.syncing import sync_path
from relet.fences.admission import admitted, busy, stale, undone

WHERE: Final = "FileFence"
INNER: Final = ".relet-fences"
"""The folder of locks, tokens and temporary files, inside the one that is guarded: on the same file system."""


class FileFence:
    """Guards files directly in `folder`; a resource is the name of one of them.

    `patience` bounds the wait for a lock. Raises `Invalid` when there is no such folder, `Unavailable` when it is on
    a network file system, where these locks do not reach everybody.
    """

    def __init__(self, folder: str | os.PathLike[str], *, patience: Any = limits.FENCE_PATIENCE_MS / 1_000) -> None:
        self._folder = Path(os.path.abspath(folder))
        self._inner = self._folder / INNER
        self._patience_ms = border.duration_ms("patience", patience)
        if not self._folder.is_dir():
            raise border.invalid("folder", f"{self._folder} is no folder; make it first")
        refuse_network(
            self._folder, kind_of(self._folder),
            "a lock does not hold for everybody; keep the files on a local disk, or use an object store",
        )  # fmt: skip
        with _translated():
            self._inner.mkdir(mode=stat.S_IMODE(self._folder.stat().st_mode), exist_ok=True)
            sync_path(self._folder)

    def raise_to(self, resource: str, token: int) -> None:
        """Accept nothing smaller than this token from now on. Raises `StaleToken`, `Unavailable`, `Invalid`."""
        resource, token = _named(resource, token)
        with self._locked(resource):
            self._admit(resource, token)

    @contextlib.contextmanager
    def write(self, resource: str, token: int) -> Iterator[BinaryIO]:
        """An open, empty temporary file (`.name` is its path) that replaces the resource at the end of the block.

        It is on disk before it is renamed, and keeps the mode of the file that it replaces. Readers see the old
        version or the new one. Raises `StaleToken` before the block or at its end; an exception leaves the old file.
        """
        self.raise_to(resource, token)
        with self._temporary(resource) as file:
            yield file
            with _translated():
                file.close()
                sync_path(file.name)
            with self._locked(resource):
                self._admit(resource, token)
                os.replace(file.name, self._folder / resource)
                self._keep_entries(resource)

    def publish(self, resource: str, token: int, data: bytes) -> Path:
        """Write `RESOURCE.TOKEN` once, without any lock, for readers who know the token from the store.

        No token is compared: whoever reads asks for the token of the holder who completed the task. Repeating it with
        the same bytes is safe; others are `Conflict`.
        """
        resource, token = _named(resource, token)
        target = self._folder / f"{resource}.{token}"
        with self._temporary(resource) as file:
            with _translated():
                file.write(data)
                file.close()
                sync_path(file.name)
            check_held(token)
            try:
                os.link(file.name, target)
            except FileExistsError:
                if target.read_bytes() != data:
                    raise Conflict(
                        f"{WHERE}: {target} is there with other bytes; what a token has published stays as it is",
                        path=str(target),
                    ) from None
            except OSError as wrong:
                raise undone(WHERE, wrong) from wrong
            self._keep_entries(resource)
        return target

    def read(self, resource: str, token: int) -> bytes:
        """What was published under a token. Raises `NotFound`."""
        resource, token = _named(resource, token)
        try:
            return (self._folder / f"{resource}.{token}").read_bytes()
        except FileNotFoundError:
            raise NotFound(f"{WHERE}: token {token} has published no {resource!r}", resource=resource) from None

    @contextlib.contextmanager
    def _temporary(self, resource: str) -> Iterator[BinaryIO]:
        path = self._inner / f"{resource}.{secrets.token_hex(8)}.part"
        try:
            with _translated():
                file = path.open("x+b")
            with file:
                with contextlib.suppress(FileNotFoundError):
                    os.chmod(path, stat.S_IMODE(os.stat(self._folder / resource).st_mode))
                yield file
        finally:
            path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self, resource: str) -> Iterator[None]:
        with _translated():
            descriptor = os.open(
                self._inner / f"{resource}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666
            )
        try:
            with _translated():
                if not lock(descriptor, self._patience_ms):
                    raise busy(WHERE, resource, self._patience_ms, "another writer of this file")
                yield
        finally:
            os.close(descriptor)

    def _keep_entries(self, resource: str) -> None:
        """The new name is there, and must stay after a power cut."""
        try:
            sync_path(self._folder)
        except OSError as wrong:
            raise OutcomeUnknown(
                f"{WHERE}: {resource!r} was replaced, and the folder could not be written to disk ({wrong})",
                code="RELET-COMMIT", resource=resource,
            ) from wrong  # fmt: skip

    def _admit(self, resource: str, token: int) -> None:
        """Compare, and keep the larger token on disk, replaced in one piece: it is never half written."""
        check_held(token)
        kept = self._inner / f"{resource}.token"
        text = kept.read_bytes().strip() if kept.exists() else b"0"
        if not text.isdigit():
            raise Unavailable(
                f"{WHERE}: {kept} is damaged; nothing was written. Write the newest token of the store into it",
                code=DAMAGED, path=str(kept),
            )  # fmt: skip
        current = int(text)
        if current > token:
            raise stale(WHERE, resource, token, current)
        if current == token:
            return
        new = self._inner / f"{resource}.token.new"
        new.write_text(f"{token}\n", encoding="ascii")
        sync_path(new)
        os.replace(new, kept)
        sync_path(self._inner)


def _named(resource: object, token: object) -> tuple[str, int]:
    name, number = admitted(resource, token)
    if len(name.encode()) > limits.FENCE_NAME_CHARS_MAX:
        raise border.invalid("resource", f"has more than {limits.FENCE_NAME_CHARS_MAX} bytes; give a shorter one")
    if name.startswith(".") or "/" in name or "\\" in name:
        raise border.invalid(
            "resource", f"{border.shown(name)} is no plain file name; leave out / and a leading dot; a folder has "
            "a fence of its own",
        )  # fmt: skip
    return name, number


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as wrong:
        raise undone(WHERE, wrong) from wrong
