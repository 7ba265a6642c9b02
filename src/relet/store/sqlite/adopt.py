"""adopt: take over a file that was moved, restored or copied; by an operator, who alone can know that it may be."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw

from relet.core import border, limits
from relet.core.border import invalid
from relet.core.errors import Conflict, NotFound, Unavailable
from relet.store.migrate import check_version, check_writer
from relet.store.sqlite.clock import StoreClock, SystemClock
from relet.store.sqlite.connect import APPLICATION_ID, check_file, not_ours, open_connection
from relet.store.sqlite.identity import EPOCH_ZERO_WALL_MS, ClockBase
from relet.store.sqlite.lane import Lane
from relet.store.sqlite.marks import Mark, SideFile, state_folder
from relet.store.sqlite.place import path_of
from relet.store.sqlite.runner import SQL
from relet.store.statements import load

if sys.platform != "win32":
    import fcntl

ADOPT_SQL: Final = load("relet.store.sqlite", "adopt.sql", ["set_store_id"])


class Adopted(NamedTuple):
    """What was done to the store."""

    place: str
    moved: bool
    """Was it last used on another machine, or in another run of this one."""
    store_id: str
    former_id: str | None
    """The id that a copy had before; None when the store kept its own."""
    epoch: int
    former_epoch: int
    tokens_above: int
    """Every token from now on is larger than this one."""
    extended: int
    """Open leases that got a whole ttl from now."""


def adopt(
    url: str, *, above: Any = None, copy: bool = False, clock: StoreClock | None = None, state: Path | None = None
) -> Adopted:
    """Bind the file to this machine: tokens in a new epoch, the clock goes on here, open leases get a ttl from now.

    `above` is a token that is known to have been given out; `copy` makes it a store of its own. Raises `Conflict`
    while anybody has the store open, `NotFound` where there is no file.
    """
    path = path_of(url)
    if path is None:
        raise invalid("url", "names a store in memory, which cannot have been moved")
    if not path.exists():
        raise NotFound(f"url: there is no file {path}", field="url", path=str(path))
    floor = 0 if above is None else border.whole("above", above, least=0, most=limits.TOKEN_MAX)
    check_file(path)
    if path.stat().st_size == 0:
        raise not_ours(path, "is empty")
    clock = clock or SystemClock()
    with _alone(path):
        lane = Lane("adopt", lambda: open_connection(path, synchronous="full"))
        try:
            return lane.transact(
                "BEGIN IMMEDIATE", lambda connection: _take(connection, path, clock, state, floor, copy=copy)
            )
        finally:
            lane.disconnect()


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Nobody has the store open now, and who opens it waits until this ends."""
    if sys.platform == "win32":
        raise invalid("adopt", "cannot tell on Windows whether the store is in use; run it on Linux or macOS")
    beside = path.with_name(f"{path.name}-open")
    try:
        descriptor = os.open(beside, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as wrong:
        raise Unavailable(
            f"{beside}, which tells who has the store open, cannot be opened ({wrong.strerror}); mend its rights",
            code="RELET-CANNOT-OPEN", path=str(beside),
        ) from wrong  # fmt: skip
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(
                f"{path} is open in another process; nothing was changed. End every program that uses it, then adopt "
                "it again",
                code="RELET-IN-USE", path=str(path),
            ) from None  # fmt: skip
        yield
    finally:
        os.close(descriptor)


def _take(
    connection: apsw.Connection, path: Path, clock: StoreClock, state: Path | None, floor: int, *, copy: bool
) -> Adopted:
    if connection.pragma("application_id") != APPLICATION_ID:
        raise not_ours(path, "is no store of relet's")
    check_version(str(path), int(connection.pragma("user_version") or 0), _one(connection, SQL["read_min_reader"])[0])
    min_writer, epoch, *_ = _one(connection, SQL["read_meta"])
    check_writer(min_writer)
    store_id, _, boot_id, _, _, mono_ms, store_ms = _one(connection, SQL["read_identity"])
    folder = state or state_folder()
    fresh = _epoch(epoch, SideFile(folder, store_id).read(), clock.wall_ms(), floor)
    known_as = os.urandom(16).hex() if copy else store_id
    # Beside the store first, durably: a token may be given out only once both know its epoch.
    SideFile(folder, known_as).write(Mark(fresh, 0))
    connection.execute(SQL["set_tokens"], {"epoch": fresh, "n": 0, "mark": 0})
    if copy:
        connection.execute(ADOPT_SQL["set_store_id"], {"store_id": known_as, "secret_key": os.urandom(32)})
    moved = boot_id != clock.boot.boot_id
    if moved:
        base = ClockBase(clock.mono_ms(), int(_one(connection, SQL["last_reading"])[0]))
    else:
        base = ClockBase(clock.mono_ms(), store_ms + clock.mono_ms() - mono_ms)
    return Adopted(
        place=str(path), moved=moved, store_id=known_as, former_id=store_id if copy else None, epoch=fresh,
        former_epoch=epoch, tokens_above=fresh << limits.TOKEN_BITS, extended=_go_on(connection, clock, base),
    )  # fmt: skip


def _epoch(stored: int, side: Mark | None, wall_ms: int, floor: int) -> int:
    hours = (wall_ms - EPOCH_ZERO_WALL_MS) // limits.HOUR_MS
    epoch = max(stored, side.epoch if side else 0, hours, floor >> limits.TOKEN_BITS) + 1
    if epoch << limits.TOKEN_BITS > limits.TOKEN_MAX:
        raise invalid("above", f"{floor} leaves no epoch above it; tokens end at {limits.TOKEN_MAX}")
    return epoch


def _go_on(connection: apsw.Connection, clock: StoreClock, base: ClockBase) -> int:
    """The outage rule: the move took no time, and what was live is live for a ttl from now."""
    wall_ms = clock.wall_ms()
    connection.execute(SQL["extend_all_open"], {"now_ms": base.store_ms})
    extended = connection.changes()
    connection.execute(SQL["rebase_clock"], {
        **clock.boot._asdict(), "mono_base_ms": base.mono_ms, "store_base_ms": base.store_ms,
        "wall_at_base_ms": wall_ms,
    })  # fmt: skip
    connection.execute(SQL["add_event"], {
        "seq": None, "task_seq": None, "before": 0, "kind": "outage", "state": None, "token": None, "holder": None,
        "at_ms": base.store_ms, "wall_ms": wall_ms, "detail": '{"why":"adopted"}',
    })  # fmt: skip
    return extended


def _one(connection: apsw.Connection, statement: str) -> Any:
    return connection.execute(statement).fetchone()
