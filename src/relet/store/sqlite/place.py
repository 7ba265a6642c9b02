"""Which file a URL means, and whether it may be used: engine version, file system, rights."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

import apsw

from relet.core.errors import Invalid, Unavailable
from relet.disk.file_systems import kind_of, refuse_network

SCHEME: Final = "sqlite://"
BESIDE: Final = re.compile(
    "(?P<file>.+)-(?:journal|wal|shm|open|gate|restoring|artifacts|holder-[0-9a-f]{24})", re.DOTALL | re.IGNORECASE
)
"""Names of what SQLite and relet keep beside a file."""


def path_of(url: str) -> Path | None:
    """The file of a URL, absolute; None for the private store in memory (`sqlite://`).

    Of a symbolic link it is what that leads to: the locks beside a store are found by its name, and so each file has
    one name for all who use it. Raises `Invalid` for a URL without a file, and for what lies beside a store.
    """
    named = named_by(url)
    if named is None:
        return None
    path = Path(os.path.realpath(named)) if os.path.islink(named) else named
    check_text(path, "url")
    if (store := owner_of(path)) is not None and os.path.lexists(f"{store}-open"):
        raise Invalid(
            f"url: {path} is what relet or SQLite keeps beside the store {store}, and no place for another; "
            f"name that store, or a new file → --url {url_of(store)}",
            field="url",
        )
    return path


def check_link(url: str, path: Path) -> None:
    """Refuse a link that leads to no file: what it is to lead to may be on a disk that is not mounted just now."""
    if (named := named_by(url)) != path and not path.exists():
        raise Invalid(
            f"url: {named} is a link to {path}, which is not there; nothing was made. Have it lead to a store, or "
            "remove the link",
            field="url",
        )


def url_of(path: Path) -> str:
    """The URL of a file, which holds in any folder and needs no quotes in a shell."""
    return f"{SCHEME}/{quote(str(path))}"


def owner_of(path: Path) -> Path | None:
    """The file beside which SQLite or relet would keep what has this name; None for any other name."""
    found = BESIDE.fullmatch(path.name)
    return None if found is None else path.with_name(found["file"])


def check_text(path: Path, field: str) -> None:
    """Refuse a path that SQLite cannot be told."""
    text = str(path)
    if "\x00" in text:
        raise Invalid(f"{field}: the path {text!a} has a NUL in it, which no file has; name another", field=field)
    if not text.isascii() and re.search("[\ud800-\udfff]", text):
        raise Invalid(
            f"{field}: the path {text!a} has bytes that are no UTF-8, which SQLite cannot open; rename the file, or "
            "that folder",
            field=field,
        )


def named_by(url: str) -> Path | None:
    """The path in a URL, absolute, as it is written there: it may be a link, which can be turned elsewhere."""
    if not url.startswith(SCHEME):
        raise Invalid(
            f"url: {url!r} is not a SQLite URL; write sqlite:///work.db, or sqlite:////srv/work.db from the root",
            field="url",
        )
    rest = unquote(url.removeprefix(SCHEME), errors="surrogateescape")
    if rest in ("", "/:memory:"):
        return None
    if not rest.startswith("/") or rest == "/" or "\x00" in rest or "?" in rest:
        raise Invalid(
            f"url: {url!r} names no file; write sqlite:///work.db for one in this folder, "
            "sqlite:////srv/work.db for one from the root, without options",
            field="url",
        )
    return Path(os.path.abspath(rest[1:]))


def check_engine(version: str | None = None) -> None:
    """Refuse engines that can corrupt a database in WAL mode when two connections reset the log at once.

    Fixed in SQLite 3.51.3, and in 3.50.7 and 3.44.6 of the older lines.
    """
    text = version or apsw.sqlite_lib_version()
    major, minor, patch = (int(part) for part in text.split(".")[:3])
    least = {(3, 50): 7, (3, 44): 6}.get((major, minor))
    if (major, minor, patch) < (3, 51, 3) and (least is None or patch < least):
        raise Unavailable(
            f"SQLite {text} can corrupt a database that several connections write (the WAL-reset fault); "
            "3.51.3 or newer is needed → pip install --upgrade apsw",
            code="RELET-ENGINE", version=text,
        )  # fmt: skip


def check_file_system(path: Path, kind: str | None = None) -> None:
    """Refuse a shared drive: one local file is for one machine."""
    refuse_network(
        path, kind or kind_of(path.parent), "SQLite's locks do not hold; keep the file on a local disk of the one "
        "machine whose processes use it",
    )  # fmt: skip


def inode_of(path: Path | str | None) -> tuple[int, int] | None:
    """Which file is there now, whatever its name; None in memory, and where there is none."""
    if path is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def replaced(path: str | None) -> Unavailable:
    """Another file is in the place of an open store, or none is."""
    if inode_of(path) is None:
        there = (
            "there is no file in the place now; nothing was written. End this program, and put the file back, or a "
            "backup in its place with relet restore: started before that, it would begin with an empty store"
        )
    else:
        there = (
            "what is in the place now is another file; nothing was written. End this program and start it again; put "
            "a backup in the place of a store with relet restore, while nobody has it open"
        )
    return Unavailable(
        f"{path} was replaced or removed while it was open here: {there}", code="RELET-REPLACED", path=str(path)
    )


def create(path: Path) -> bool:
    """Make the file, readable by its owner alone, unless it exists; answers whether it was made."""
    if os.path.isdir(path):
        raise Invalid(f"url: {path} is a folder; name a file in it, such as {path}/relet.db", field="url")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return False
    except FileNotFoundError:
        raise Unavailable(f"{path}: its folder does not exist → mkdir -p {path.parent}", path=str(path)) from None
    except OSError as wrong:
        raise Unavailable(f"{path} cannot be made: {wrong.strerror}", path=str(path)) from wrong
    return True
