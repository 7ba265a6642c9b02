"""A store's file in the hands of an operator: it is there, it is relet's, and nobody has it open."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from relet.core.border import invalid
from relet.core.errors import Conflict, NotFound, Unavailable
from relet.store.sqlite.connect import APPLICATION_ID, check_file, not_ours
from relet.store.sqlite.openers import named, who_holds
from relet.store.sqlite.place import check_text, path_of

if sys.platform != "win32":
    import fcntl


def file_of(url: str) -> Path:
    """The file of a URL, which is there and may be a store. Raises `NotFound` or `Invalid`."""
    path = path_of(url)
    if path is None:
        raise invalid("url", "names a store in memory, which is no file")
    check_there(path, "url")
    check_file(path)
    return path


def check_there(path: Path, field: str) -> None:
    """Refuse what is not there, what is no file (a pipe would be waited for without end), and what is empty."""
    check_text(path, field)
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"{field}: there is no file {path}", field=field, path=str(path)) from None
    except OSError as wrong:
        raise Unavailable(
            f"{field}: {path} cannot be looked at ({wrong.strerror}); mend its name, or the rights of its folders",
            code="RELET-CANNOT-OPEN", path=str(path),
        ) from wrong  # fmt: skip
    if not stat.S_ISREG(found.st_mode):
        raise not_ours(path, "is not a file", field)
    if found.st_size == 0:
        raise not_ours(path, "is empty", field)


def check_ours(connection: apsw.Connection, path: Path, field: str = "url") -> None:
    """Refuse a database of another program."""
    if connection.pragma("application_id") != APPLICATION_ID:
        raise not_ours(path, "is no store of relet's", field)


def beside_of(path: Path) -> Path:
    """The file that relet keeps beside a store, and nobody else beside a file of theirs."""
    return path.with_name(f"{path.name}-open")


@contextmanager
def alone(path: Path, verb: str) -> Iterator[None]:
    """Nobody has the store open now, and who opens it waits until this ends."""
    if sys.platform == "win32":
        raise invalid(verb, "cannot tell on Windows whether the store is in use; run it on Linux or macOS")
    beside = beside_of(path)
    try:
        descriptor = os.open(beside, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        raise Unavailable(f"{path}: its folder does not exist → mkdir -p {path.parent}", path=str(path)) from None
    except OSError as wrong:
        raise Unavailable(
            f"{beside}, which tells who has the store open, cannot be opened ({wrong.strerror}); mend its rights",
            code="RELET-CANNOT-OPEN", path=str(beside),
        ) from wrong  # fmt: skip
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holders = who_holds(beside, descriptor)
            raise Conflict(
                f"{path} is open in {named(holders)}; nothing was changed. End every program that uses it, then "
                f"repeat → relet {verb}",
                code="RELET-IN-USE", path=str(path), pids=[pid for pid, _ in holders],
            ) from None  # fmt: skip
        yield
    finally:
        os.close(descriptor)


def one(connection: apsw.Connection, statement: str) -> Any:
    """The single row of a statement."""
    return connection.execute(statement).fetchone()
