"""What a store stands on, looked at without opening it as a store: nothing is written, and nothing is refused."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import apsw

from relet.core.doctor.facts import ClockFacts, FileFacts, PlaceFacts, ProcessFacts, StateFacts
from relet.core.errors import Error
from relet.disk.file_systems import kind_of
from relet.store.migrate import SCHEMA
from relet.store.sqlite.clock import StoreClock, SystemClock
from relet.store.sqlite.connect import APPLICATION_ID, PRAGMA_PATIENCE_MS, open_connection
from relet.store.sqlite.marks import SideFile, state_folder
from relet.store.sqlite.place import check_engine, path_of
from relet.store.sqlite.runner import SQL

PROC: Final = Path("/proc")
WAL: Final = "wal"
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
COMMAND_CHARS: Final = 80
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
        state=_state(state or state_folder(), store_id), processes=_processes(path, proc),
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
            return found
        finally:
            connection.close()
    except apsw.Error:
        return {}  # why, the attempt to open it says


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
        synchronous=_synchronous(path) if inside.get("journal_mode") == WAL else None, knows_schema=SCHEMA, **inside,
    )  # fmt: skip


def _is_open(mode: int) -> bool:
    return sys.platform != "win32" and bool(mode & OTHERS)


def _synchronous(path: Path) -> int | None:
    """Of a connection as it is opened for what must last; which would set WAL mode, where it is not set."""
    connection = open_connection(path, synchronous="full")
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


def _processes(path: Path, proc: Path) -> list[ProcessFacts] | None:
    """Who has the file's log open, as far as this user may see it; each copy of SQLite maps its index once."""
    if not proc.joinpath("self", "maps").exists():
        return None
    index = f"{os.path.realpath(path)}-shm"
    found = []
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            maps = folder.joinpath("maps").read_text("utf-8", "surrogateescape")
            if index not in maps:
                continue
            words = folder.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        except OSError:
            continue  # ended meanwhile, or somebody else's
        found.append(ProcessFacts(pid=int(folder.name), command=words[:COMMAND_CHARS], engines=_engines(maps, index)))
    return sorted(found, key=lambda one: one.pid)


def _engines(maps: str, index: str) -> int:
    offsets = Counter(line.split()[2] for line in maps.splitlines() if line.endswith(index))
    return max(offsets.values(), default=0)
