"""backup: a copy of a store as it stands at one moment, while others go on; done once it was read and verified."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import apsw

from relet.core.border import invalid
from relet.core.errors import Conflict, Unavailable
from relet.core.upkeep import BackedUp, Verified
from relet.disk.syncing import sync_path
from relet.store.sqlite.lane import translated
from relet.store.sqlite.place import check_text, owner_of, url_of
from relet.store.sqlite.verify import verify_file
from relet.store.verify import Exists


def backup(
    connection: apsw.Connection, place: str, to: str | Path, exists: Exists | None,
    *, verified_by: Callable[[Path, Exists | None], Verified] = verify_file,
) -> BackedUp:  # fmt: skip
    """Copy the store of a connection, which is in no transaction, into a new file.

    Raises `Conflict` when the file is there, `Unavailable` when it cannot be written, or when the copy does not hold
    what must hold of a store: it is left beside, to be looked at.
    """
    target = target_of(to)
    draft = target.with_name(f"{target.name}.part-{os.getpid()}")
    copy_into(connection, draft)
    verified = verified_by(draft, exists)
    if not verified.ok:
        raise _not_whole(draft, target, verified)
    try:
        os.link(draft, target)  # unlike a rename, it never replaces what came there meanwhile
    except FileExistsError:
        raise _is_there(target) from None
    except OSError:  # a file system without links
        draft.rename(target)
    draft.unlink(missing_ok=True)
    sync_path(target.parent)
    return BackedUp(
        place=place, backup=str(target), bytes=target.stat().st_size, tasks=verified.tasks,
        artifacts=verified.artifacts, artifacts_at=None,
    )  # fmt: skip


def target_of(to: str | Path) -> Path:
    """The new file that is meant, absolute. Raises `Invalid` or `Conflict`."""
    if not os.fspath(to):
        raise invalid("to", "names no file; give the path of a new one")
    if os.fspath(to).endswith(("/", os.sep)):
        raise invalid("to", f"{os.fspath(to)} names a folder; name a new file in it")
    target = Path(os.path.abspath(to))
    check_text(target, "to")
    if os.path.lexists(target):
        raise _is_there(target)
    if (file := owner_of(target)) is not None:
        raise invalid(
            "to", f"{target} is what SQLite or relet would keep beside a file {file}, which could not be used "
            "because of it; nothing was made. Name another",
        )  # fmt: skip
    if not os.path.isdir(target.parent):
        raise Unavailable(f"{target}: its folder does not exist → mkdir -p {target.parent}", path=str(target))
    return target


def copy_into(connection: apsw.Connection, draft: Path) -> None:
    """A compact copy of what the connection sees, on disk when this returns."""
    try:
        draft.unlink(missing_ok=True)
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        # One snapshot from its first page to its last, however many write meanwhile.
        connection.execute("VACUUM INTO ?", (str(draft),))
        sync_path(draft)
    except OSError as wrong:
        raise Unavailable(f"{draft} cannot be written: {wrong.strerror}", path=str(draft)) from wrong
    except apsw.Error as wrong:
        draft.unlink(missing_ok=True)
        raise translated(wrong) from wrong


def _is_there(target: Path) -> Conflict:
    return Conflict(
        f"to: {target} is there already, and was left as it is; name a new file", code="RELET-EXISTS",
        field="to", path=str(target),
    )  # fmt: skip


def _not_whole(draft: Path, target: Path, verified: Verified) -> Unavailable:
    first = verified.findings[0]
    return Unavailable(
        f"{target} was not made: the copy does not hold what must hold of a store, {first.row}: {first.text} "
        f"({len(verified.findings)} findings in all). It is kept as {draft} → relet verify --url {url_of(draft)}",
        code="RELET-NOT-WHOLE", path=str(draft), findings=len(verified.findings),
    )  # fmt: skip
