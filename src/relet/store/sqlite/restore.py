"""restore: go on from a backup, in a new epoch. What happened since it was made is not known, and nobody's."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any, Final, NamedTuple

import apsw
import msgspec

from relet.core import border, limits
from relet.core.border import invalid
from relet.core.drive import drive
from relet.core.errors import DAMAGED, Conflict, Unavailable
from relet.core.model import LapsedBy
from relet.core.rules.lapse import close_lapsed
from relet.core.upkeep import Restored
from relet.disk.state import state_folder
from relet.disk.syncing import sync_path
from relet.store.migrate import check_version, check_writer
from relet.store.sql import SqlTx
from relet.store.sqlite import place
from relet.store.sqlite.adopt import base_of, next_epoch, rebase
from relet.store.sqlite.alone import alone, beside_of, check_ours, check_there, one
from relet.store.sqlite.backup import copy_into
from relet.store.sqlite.clock import StoreClock, SystemClock
from relet.store.sqlite.connect import is_database, not_ours, open_connection
from relet.store.sqlite.gone import check_here
from relet.store.sqlite.identity import Identity
from relet.store.sqlite.lane import Lane, translated
from relet.store.sqlite.marks import Mark, SideFile
from relet.store.sqlite.runner import READ_META, SQL, SqliteRunner
from relet.store.sqlite.verify import query_of, verify_file
from relet.store.statements import load
from relet.store.verify import Exists, named_bytes

RESTORE_SQL: Final = load("relet.store.sqlite", "restore.sql", ["expire_all_open", "count_started"])
BESIDE: Final = ("-wal", "-shm")


class _Known(NamedTuple):
    """What the file that is to be replaced tells."""

    store_id: str
    epoch: int


def restore(
    url: str, backup: str | os.PathLike[str], *, above: Any = None, exists: Exists | None = None,
    clock: StoreClock | None = None, state: Path | None = None,
) -> Restored:  # fmt: skip
    """Put a backup in the place of a store; the file that was there is kept under another name.

    All leases of the backup have lapsed, effects that were under way are unknown, tokens go on above all that were
    ever given out (`above` names one that is known to be). `exists` tells which of the bytes that it names are there:
    the answer lists the others, which are no reason to refuse. Raises `Conflict` while anybody has the store open, or
    when the backup is another store's; `NotFound`, `Invalid` or `Unavailable` for a backup that cannot be used.
    """
    path = place.path_of(url)
    if path is None:
        raise invalid("url", "names a store in memory, which is no file")
    if not os.fspath(backup):
        raise invalid("backup", "names no file; give the path of a backup")
    source = Path(os.path.abspath(backup))
    check_there(source, "backup")
    floor = 0 if above is None else border.whole("above", above, least=0, most=limits.TOKEN_MAX)
    place.check_engine()
    place.check_file_system(path)
    _refuse_what_is_replaced(path, source)
    clock, folder = clock or SystemClock(), state or state_folder()
    _refuse_what_is_no_store(path)  # before the file beside it is made
    with alone(path, "restore"):
        known = _known(path)
        draft = path.with_name(f"{path.name}-restoring")
        try:
            _remove(draft)
            try:
                _copy(source, draft)
                restored = _renew(draft, path, source, known, clock, folder, floor)
                if exists is not None:
                    restored = _with_bytes(restored, draft, exists)
                sync_path(draft)
                replaced = _replace(path, draft, clock)
            finally:
                _remove(draft)
        except OSError as wrong:
            raise Unavailable(
                f"{path} was not restored: {wrong}. What was there is there as it was, or beside it as "
                f"{path.name}.replaced-...; mend that, then repeat → relet restore",
                code="RELET-CANNOT-OPEN", path=str(path),
            ) from wrong  # fmt: skip
    return msgspec.structs.replace(restored, replaced=replaced)


def _refuse_what_is_replaced(path: Path, source: Path) -> None:
    """A backup under a name that the store itself needs would be gone before it was read, or after."""
    if path.exists() and path.samefile(source):
        raise invalid("backup", f"{source} is the store itself")
    for other in path.parent.iterdir() if path.parent.is_dir() else ():
        if place.owner_of(other) == path and other.exists() and other.samefile(source):
            raise invalid(
                "backup", f"{source} has a name that is used beside {path}, so that it would be lost; nothing was "
                f"changed. Give it another name first → mv {quote(str(source))} {quote(f'{path}.backup')}",
            )  # fmt: skip


def _refuse_what_is_no_store(path: Path) -> None:
    """Without the head of a database a file is a damaged store if relet's own file lies beside it, else it is not."""
    if os.path.lexists(path) and not path.is_file():
        raise not_ours(path, "is not a file")
    try:
        if path.exists() and path.stat().st_size and not is_database(path) and not beside_of(path).exists():
            raise invalid(
                "url", f"{path} is not a SQLite database, and no store that was used in this place; nothing was "
                "changed. To have the backup there all the same, move the file away first",
            )  # fmt: skip
    except Unavailable as wrong:
        if wrong.code != DAMAGED:
            raise


def _known(path: Path) -> _Known | None:
    """Of the file in place, with its log folded in; None where there is none, or it cannot be read."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    try:
        if not is_database(path):
            return None
        connection = open_connection(path, synchronous="full")
        try:
            check_ours(connection, path)
            check_here(connection.execute, one(connection, READ_META)[0])
            return _Known(one(connection, SQL["read_identity"])[0], one(connection, READ_META)[1])
        finally:
            connection.close()
    except apsw.Error:
        return None  # damaged, which may be why it is replaced
    except Unavailable as wrong:
        if wrong.code != DAMAGED:
            raise
        return None


def _copy(source: Path, draft: Path) -> None:
    try:
        connection = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            check_ours(connection, source, "backup")
            version = int(connection.pragma("user_version") or 0)
            check_version(str(source), version, one(connection, SQL["read_min_reader"])[0])
            least = one(connection, READ_META)[0]
            check_here(connection.execute, least)
            check_writer(least)
            copy_into(connection, draft)
        finally:
            connection.close()
    except apsw.Error as wrong:
        raise translated(wrong) from wrong
    if not (verified := verify_file(draft, None)).ok:
        first = verified.findings[0]
        raise Unavailable(
            f"{source} does not hold what must hold of a store, {first.row}: {first.text} "
            f"({len(verified.findings)} findings in all); nothing was changed "
            f"→ relet verify --url {place.url_of(source)}",
            code="RELET-NOT-WHOLE", path=str(source), findings=len(verified.findings),
        )  # fmt: skip


def _renew(
    draft: Path, path: Path, source: Path, known: _Known | None, clock: StoreClock, folder: Path, floor: int
) -> Restored:
    """The copy in a new epoch, with nothing held."""

    def work(connection: apsw.Connection) -> Restored:
        store_id, secret_key, *_ = one(connection, SQL["read_identity"])
        if known is not None and known.store_id != store_id:
            raise _of_another(source, path)
        epochs = [one(connection, READ_META)[1], known.epoch if known else 0]
        side = SideFile(folder, store_id)
        fresh = next_epoch(epochs, side.read(), clock, floor)
        # Beside the store first, durably: a token may be given out only once both know its epoch.
        side.write(Mark(fresh, 0))
        connection.execute(SQL["set_tokens"], {"epoch": fresh, "n": 0, "mark": 0})
        base = base_of(connection, clock)
        rebase(connection, clock, base, "restored")
        unknown = one(connection, RESTORE_SQL["count_started"])[0]
        connection.execute(RESTORE_SQL["expire_all_open"], {"now_ms": base.store_ms})
        identity = Identity(
            store_id=store_id, secret_key=secret_key, clock=clock, base=base, side=None, opened=None,
        )  # fmt: skip
        lapsed = _lapse_all(connection, identity)
        return Restored(
            place=str(path), backup=str(source), replaced=None, epoch=fresh,
            tokens_above=fresh << limits.TOKEN_BITS, lapsed=lapsed, unknown=unknown,
        )  # fmt: skip

    lane = Lane("restore", lambda: open_connection(draft, synchronous="full"))
    try:
        return lane.transact("BEGIN IMMEDIATE", work)
    finally:
        lane.disconnect()  # folds its log into it


def _with_bytes(restored: Restored, draft: Path, exists: Exists) -> Restored:
    """Told before anything is replaced: a place that cannot be asked leaves all as it was."""
    connection = apsw.Connection(str(draft), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        named, missing = 0, []
        for uri in named_bytes(query_of(connection)):
            named += 1
            if not exists(uri):
                missing.append(uri)
    finally:
        connection.close()
    most = limits.FINDINGS_MAX
    return msgspec.structs.replace(restored, artifacts=named, missing=missing[:most], more=len(missing) > most)


def _lapse_all(connection: apsw.Connection, identity: Identity) -> int:
    cursor = connection.cursor()
    meta = cursor.execute(READ_META).fetchall()[0]
    tx = SqlTx(SqliteRunner(cursor, identity, durable=True, meta=meta), "default")
    lapsed, more = 0, True
    while more:
        closed, more = drive(close_lapsed(tx, by=LapsedBy.RESTORE))
        lapsed += closed
    drive(tx.settle())
    return lapsed


def _replace(path: Path, draft: Path, clock: StoreClock) -> str | None:
    """Put the draft in the place of the file, durably; answers where that is kept."""
    kept = _set_aside(path, clock)
    os.replace(draft, path)
    # What a log left behind would be played into the file that is there now.
    for ending in BESIDE:
        path.with_name(f"{path.name}{ending}").unlink(missing_ok=True)
    sync_path(path.parent)
    return kept


def _set_aside(path: Path, clock: StoreClock) -> str | None:
    """Keep what is to be replaced: its name, which is never one that is taken. A log without its file is kept too."""
    at = datetime.fromtimestamp(clock.wall_ms() / 1_000, UTC)
    kept = path.with_name(f"{path.name}.replaced-{at:%Y%m%dT%H%M%S.%f}")
    log = path.with_name(f"{path.name}-wal")
    kept_log = kept.with_name(f"{kept.name}-wal")
    if has_log := log.exists() and log.stat().st_size > 0:  # could not be folded in
        os.replace(log, kept_log)
    if not path.exists():
        return str(kept_log) if has_log else None
    try:
        os.link(path, kept)  # so that there is a whole store under the name at every instant
    except OSError:
        os.replace(path, kept)
    return str(kept)


def _remove(draft: Path) -> None:
    for ending in ("", *BESIDE, "-journal"):
        with suppress(FileNotFoundError):
            draft.with_name(f"{draft.name}{ending}").unlink()


def _of_another(source: Path, path: Path) -> Conflict:
    return Conflict(
        f"{source} is a backup of another store than {path}; nothing was changed. To have it in that place all the "
        "same, move the file away first",
        code="RELET-OTHER-STORE", backup=str(source), path=str(path),
    )  # fmt: skip
