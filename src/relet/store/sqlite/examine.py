"""What a store stands on, looked at without opening it as a store: nothing is written, and nothing is refused."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Any, Final

import apsw

from relet.core.doctor.facts import ClockFacts, FileFacts, PlaceFacts, StateFacts
from relet.core.doctor.moved import Moved
from relet.core.errors import Error
from relet.disk.file_systems import kind_of
from relet.disk.state import state_folder
from relet.store.copying import went_on
from relet.store.migrate import SCHEMA
from relet.store.sqlite.clock import StoreClock, SystemClock
from relet.store.sqlite.connect import APPLICATION_ID, PRAGMA_PATIENCE_MS, open_connection
from relet.store.sqlite.gone import read_gone
from relet.store.sqlite.marks import SideFile
from relet.store.sqlite.openers import PROC, who_maps
from relet.store.sqlite.place import check_engine, path_of
from relet.store.sqlite.runner import SQL

WAL: Final = "wal"
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
BESIDE: Final = ("", "-wal", "-shm", "-open")
"""What lies beside the file, by the end of its name."""


def look_at(url: str, *, clock: StoreClock | None = None, state: Path | None = None, proc: Path = PROC) -> PlaceFacts:
    """The facts about the place of a store; what cannot be found out is left open."""
    path = path_of(url)
    clock = clock or SystemClock()
    boot = clock.boot
    now = ClockFacts(
        source=f"monotonic ({_clock_source()})" if boot.boot_id else "wall", boot_id=boot.boot_id,
        machine_id=boot.machine_id, time_namespace=boot.time_namespace,
    )  # fmt: skip
    version, trouble = apsw.sqlite_lib_version(), None
    try:
        check_engine(version)
    except Error as wrong:
        trouble = str(wrong)
    if path is None:
        return PlaceFacts(engine=version, engine_trouble=trouble, file=None, clock=now)
    inside = _inside(path)
    row = inside.pop("identity", None)
    store_id = None
    if row is not None:
        store_id, _, boot_id, namespace, machine_id, _, _ = row
        now = ClockFacts(
            source=now.source, boot_id=boot.boot_id, machine_id=boot.machine_id, time_namespace=boot.time_namespace,
            store_boot_id=boot_id, store_machine_id=machine_id, store_time_namespace=namespace,
        )  # fmt: skip
    return PlaceFacts(
        engine=version, engine_trouble=trouble, file=_file(path, inside), clock=now,
        state=_state(state or state_folder(), store_id), processes=who_maps(path, proc),
    )  # fmt: skip


def _inside(path: Path) -> dict[str, Any]:
    """What the file says of itself; nothing where it is none of ours."""
    if not path.is_file() or path.stat().st_size == 0:
        return {}
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            connection.set_busy_timeout(PRAGMA_PATIENCE_MS)
            found: dict[str, Any] = {"journal_mode": connection.pragma("journal_mode")}
            if connection.pragma("application_id") == APPLICATION_ID:
                found["schema"] = connection.pragma("user_version")
                found["identity"] = connection.execute(SQL["read_identity"]).fetchone()
                found["moved"] = _moved(connection, path)
            return found
        finally:
            connection.close()
    except apsw.Error:
        return {}  # why, the attempt to open it says


def _moved(connection: apsw.Connection, path: Path) -> Moved | None:
    gone = read_gone(connection.execute)
    if gone is None:
        return None
    return Moved(to=gone.place, told=went_on(f"the store of {path} was copied to", gone.place, gone.wall_ms))


def _file(path: Path, inside: dict[str, Any]) -> FileFacts:
    exists = path.exists()
    parts = [path.with_name(path.name + end) for end in BESIDE] if exists else []
    there = {part: part.stat() for part in parts if part.exists()}
    wal = there.get(path.with_name(f"{path.name}-wal"))
    folder = path.parent if path.parent.is_dir() else None
    return FileFacts(
        path=str(path), exists=exists, file_system=kind_of(path.parent),
        free_bytes=None if folder is None else shutil.disk_usage(folder).free,
        wal_bytes=0 if wal is None else wal.st_size,
        open_to_others=[str(part) for part, found in there.items() if _is_open(found.st_mode)],
        synchronous=_synchronous() if inside.get("journal_mode") == WAL else None, knows_schema=SCHEMA, **inside,
    )  # fmt: skip


def _is_open(mode: int) -> bool:
    return sys.platform != "win32" and bool(mode & OTHERS)


def _synchronous() -> int:
    """Of a connection as it is opened for what must last; in memory, since one to the file would be open to write."""
    connection = open_connection(None, synchronous="full")
    try:
        return int(connection.pragma("synchronous"))
    finally:
        connection.close()


def _state(folder: Path, store_id: str | None) -> StateFacts:
    has_mark = False
    if store_id is not None:
        try:
            has_mark = SideFile(folder, store_id).read() is not None
        except Error:
            has_mark = False
    return StateFacts(
        folder=str(folder), exists=folder.is_dir(), writable=os.access(folder, os.W_OK | os.X_OK), store_id=store_id,
        has_mark=has_mark,
    )  # fmt: skip


def _clock_source() -> str:
    try:
        return Path("/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text("ascii").strip()
    except OSError:
        return "system"
