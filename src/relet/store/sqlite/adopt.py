"""adopt: take over a file that was moved, restored or copied; by an operator, who alone can know that it may be."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw

from relet.core import border, limits
from relet.core.border import invalid
from relet.disk.state import state_folder
from relet.store.epochs import hours_at
from relet.store.migrate import check_version, check_writer
from relet.store.sqlite.alone import alone, check_ours, file_of, one
from relet.store.sqlite.clock import StoreClock, SystemClock
from relet.store.sqlite.connect import note_outage, open_connection
from relet.store.sqlite.gone import check_here
from relet.store.sqlite.identity import ClockBase
from relet.store.sqlite.lane import Lane
from relet.store.sqlite.marks import Mark, SideFile
from relet.store.sqlite.runner import SQL
from relet.store.statements import load

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
    path = file_of(url)
    floor = 0 if above is None else border.whole("above", above, least=0, most=limits.TOKEN_MAX)
    clock = clock or SystemClock()
    with alone(path, "adopt"):
        lane = Lane("adopt", lambda: open_connection(path, synchronous="full"))
        try:
            return lane.transact(
                "BEGIN IMMEDIATE", lambda connection: _take(connection, path, clock, state, floor, copy=copy)
            )
        finally:
            lane.disconnect()


def _take(
    connection: apsw.Connection, path: Path, clock: StoreClock, state: Path | None, floor: int, *, copy: bool
) -> Adopted:
    check_ours(connection, path)
    check_version(str(path), int(connection.pragma("user_version") or 0), one(connection, SQL["read_min_reader"])[0])
    min_writer, epoch, *_ = one(connection, SQL["read_meta"])
    check_here(connection.execute, min_writer)
    check_writer(min_writer)
    store_id, _, boot_id, *_ = one(connection, SQL["read_identity"])
    folder = state or state_folder()
    fresh = next_epoch([epoch], SideFile(folder, store_id).read(), clock, floor)
    known_as = os.urandom(16).hex() if copy else store_id
    # Beside the store first, durably: a token may be given out only once both know its epoch.
    SideFile(folder, known_as).write(Mark(fresh, 0))
    connection.execute(SQL["set_tokens"], {"epoch": fresh, "n": 0, "mark": 0})
    if copy:
        connection.execute(ADOPT_SQL["set_store_id"], {"store_id": known_as, "secret_key": os.urandom(32)})
    base = base_of(connection, clock)
    # The outage rule: the move took no time, and what was live is live for a ttl from now.
    connection.execute(SQL["extend_all_open"], {"now_ms": base.store_ms})
    extended = connection.changes()
    rebase(connection, clock, base, "adopted")
    return Adopted(
        place=str(path), moved=boot_id != clock.boot.boot_id, store_id=known_as, former_id=store_id if copy else None,
        epoch=fresh, former_epoch=epoch, tokens_above=fresh << limits.TOKEN_BITS, extended=extended,
    )  # fmt: skip


def next_epoch(stored: Iterable[int], side: Mark | None, clock: StoreClock, floor: int) -> int:
    """An epoch above all that anybody knows of: stores, side file, hours since 2025, a token that was seen in use."""
    hours, _ = hours_at(clock.wall_ms())
    epoch = max(*stored, side.epoch if side else 0, hours, floor >> limits.TOKEN_BITS) + 1
    if epoch << limits.TOKEN_BITS > limits.TOKEN_MAX:
        raise invalid("above", f"{floor} leaves no epoch above it; tokens end at {limits.TOKEN_MAX}")
    return epoch


def base_of(connection: apsw.Connection, clock: StoreClock) -> ClockBase:
    """Where the file's time stands now: the time that it was elsewhere counts as none."""
    _, _, boot_id, _, _, mono_ms, store_ms = one(connection, SQL["read_identity"])
    last_ms = int(one(connection, SQL["last_reading"])[0])
    if boot_id != clock.boot.boot_id:
        return ClockBase(clock.mono_ms(), last_ms)
    return ClockBase(clock.mono_ms(), store_ms + clock.mono_ms() - mono_ms)


def rebase(connection: apsw.Connection, clock: StoreClock, base: ClockBase, why: str) -> None:
    """Bind the file to this machine's clock, and write down why."""
    wall_ms = clock.wall_ms()
    connection.execute(SQL["rebase_clock"], {
        **clock.boot._asdict(), "mono_base_ms": base.mono_ms, "store_base_ms": base.store_ms,
        "wall_at_base_ms": wall_ms,
    })  # fmt: skip
    note_outage(connection, base.store_ms, wall_ms, why)
