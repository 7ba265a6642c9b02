"""copy, the end that is left: a store's file in the hands of this process alone, read from one end to the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import apsw

from relet.core.rules.sweep import Sweep, Swept
from relet.core.upkeep import Verified
from relet.disk.state import state_folder
from relet.store.copying import NUMBERED, TABLES, Gone, Held, Row
from relet.store.migrate import check_version
from relet.store.sqlite.adopt import base_of, next_epoch
from relet.store.sqlite.alone import alone, beside_of, check_ours, file_of, one
from relet.store.sqlite.backend import SqliteBackend
from relet.store.sqlite.clock import StoreClock, SystemClock
from relet.store.sqlite.connect import open_connection
from relet.store.sqlite.gone import read_gone, remove_gone, write_gone
from relet.store.sqlite.lane import translated
from relet.store.sqlite.marks import Mark, SideFile
from relet.store.sqlite.runner import READ_META, SQL
from relet.store.sqlite.verify import query_of, verify_file
from relet.store.statements import load
from relet.store.verify import named_bytes

COPY_SQL: Final = load("relet.store.sqlite", "copy_out.sql", [
    *TABLES, "count_rows", "last_numbers", "open_leases", "count_access",
])  # fmt: skip
BUSY_MS: Final = 5_000


@contextmanager
def leaving(
    url: str, *, looks: bool = False, clock: StoreClock | None = None, state: Path | None = None
) -> Iterator[Departure]:
    """The store of a file, with nobody else near it; what it is told to do is done when the block ends.

    With `looks` it is only read, beside whoever uses it. Raises `Conflict` while anybody has it open, `NotFound`
    where there is no file.
    """
    path = file_of(url)
    clock, state = clock or SystemClock(), state or state_folder()
    if looks:
        with _opened(path, clock, state, writes=False) as departure:
            yield departure
        return
    lapsed = _close_lapsed(url, path, clock, state)
    with alone(path, "copy"), _opened(path, clock, state, writes=True) as departure:
        departure.lapsed = lapsed
        yield departure


class Departure:
    """A store that is copied; within one transaction, from the first look to the last."""

    lapsed = 0

    def __init__(self, connection: apsw.Connection, path: Path, clock: StoreClock, state: Path) -> None:
        self._connection, self._path, self._clock = connection, path, clock
        self.place = str(path)
        self.store_id, self.secret_key, *_ = one(connection, SQL["read_identity"])
        self.address = f"sqlite:///{path}"
        self._side = SideFile(state, self.store_id)

    def check_alone(self) -> None:
        # Where nobody has ever opened it there is no such file, and none is made for a look.
        if beside_of(self._path).exists():
            with alone(self._path, "copy"):
                pass

    def gone(self) -> Gone | None:
        return read_gone(self._connection.execute)

    def held(self) -> list[Held]:
        rows: Any = self._connection.execute(COPY_SQL["open_leases"], {"now_ms": self.now_ms()})
        return [
            Held(tenant=tenant, task=task, holder=holder, left_ms=max(0, left)) for tenant, task, holder, left in rows
        ]

    def counts(self) -> dict[str, int]:
        rows: Any = self._connection.execute(COPY_SQL["count_rows"])
        return dict(rows)

    def verified(self) -> Verified:
        return verify_file(self._path, None)

    def named(self) -> Iterator[str]:
        return named_bytes(query_of(self._connection))

    def access(self) -> Row:
        return tuple(one(self._connection, COPY_SQL["count_access"]))

    def now_ms(self) -> int:
        return base_of(self._connection, self._clock).store_ms

    def rows(self, table: str, ahead_ms: int) -> Iterator[Row]:
        text = COPY_SQL[table]
        try:
            # A cursor of its own: rows are handed on while more of them are read.
            yield from self._connection.cursor().execute(
                text, {"ahead_ms": ahead_ms} if ":ahead_ms" in text else None
            )
        except apsw.Error as wrong:
            raise translated(wrong) from wrong

    def numbers(self) -> dict[str, int]:
        rows: Any = self._connection.execute(COPY_SQL["last_numbers"])
        known = {name: last or 0 for name, last in rows}
        return {table: known.get(table, 0) for table in NUMBERED}

    def epoch_above(self, least: int) -> int:
        _, epoch, _, _, last, _ = one(self._connection, READ_META)
        return next_epoch([epoch, least], self._side.read(), self._clock, last or 0)

    def give_up(self, place: str, epoch: int) -> None:
        # Beside the file too: a backup of it that is put in its place goes on above what the copy gives out.
        self._side.write(Mark(epoch, 0))
        write_gone(self._connection.execute, Gone(place, epoch, self._clock.wall_ms()))
        self._commit()

    def take_back(self, epoch: int) -> None:
        self._side.write(Mark(epoch, 0))
        self._connection.execute(SQL["set_tokens"], {"epoch": epoch, "n": 0, "mark": 0})
        remove_gone(self._connection.execute)
        self._commit()

    def _commit(self) -> None:
        """On disk when this returns; nobody else comes between."""
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN IMMEDIATE")


@contextmanager
def _opened(path: Path, clock: StoreClock, state: Path, *, writes: bool) -> Iterator[Departure]:
    try:
        if writes:
            connection = open_connection(path, synchronous="full")
        else:
            connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            connection.set_busy_timeout(BUSY_MS)
            check_ours(connection, path)
            version = int(connection.pragma("user_version") or 0)
            check_version(str(path), version, one(connection, SQL["read_min_reader"])[0])
            connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            yield Departure(connection, path, clock, state)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            connection.close()
    except apsw.Error as wrong:
        raise translated(wrong) from wrong


def _close_lapsed(url: str, path: Path, clock: StoreClock, state: Path) -> int:
    """Close what has lapsed, as any claim would; where the machine was started anew, the store's clock goes on."""
    with _opened(path, clock, state, writes=False) as departure:
        if departure.gone() is not None:
            return 0
    backend, lapsed, more = SqliteBackend(url, "default", clock=clock, state=state), 0, True
    try:
        lapsed += backend.bury()
        while more:
            swept: Swept = backend.call(Sweep())
            lapsed, more = lapsed + swept.lapsed, swept.more
    finally:
        backend.close()
    return lapsed
