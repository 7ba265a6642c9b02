"""migrate: bring a store up to the schema of this relet while its clients go on, and later take away the old form.

First what is added (`pre`), which clients of the schema before do not see; then, by an operator who knows that none
of them is left, what they could not live beside (`post`). A lock on a table is waited for in short tries: whoever
waits for one keeps everybody else from the table too. Killed at any statement, it leaves the old schema or the new
one, and does what is left when it is run again.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import errors as pg

from relet.core.errors import Conflict, Error, Forbidden, NotFound, Unavailable
from relet.core.upkeep import Migrated
from relet.store.migrate import check_reader
from relet.store.postgres.connect import TUNING, Capabilities, Connection, connect, probe
from relet.store.postgres.faults import BUSY, told_by, translated
from relet.store.postgres.place import conninfo_of, located, place_of, quoted
from relet.store.postgres.schema import MIN_READER, MIN_WRITER, SCHEMA, check_open, row_gone
from relet.store.postgres.texts import PACKAGE, Dialect, in_dialect, numbered, statement
from relet.store.postgres.tuned import untuned
from relet.store.postgres.upgrade_steps import MADE, is_alone, statements, steps
from relet.store.statements import folder_of, load

UPGRADE_SQL: Final = load(PACKAGE, "upgrade.sql", [
    "read_state", "make_turn", "take_turn", "lock_meta_row", "set_version", "set_least",
    "is_index_valid", "find_blockers",
])  # fmt: skip
PATIENCE_S: Final = 60.0
LOCK_MS: Final = 200
"""At most so long everybody else waits behind one try."""
PAUSE_S_MIN, PAUSE_S_MAX = 0.2, 1.0
ALONE_MS: Final = 600_000
"""An index that is made beside its table's users waits for their transactions, and keeps nobody waiting."""


class Release(NamedTuple):
    """What a relet brings a store to."""

    folder: Path
    schema: int
    min_reader: int
    min_writer: int


THIS: Final = Release(folder_of(PACKAGE) / "migrations", SCHEMA, MIN_READER, MIN_WRITER)


class State(NamedTuple):
    """Where a store stands."""

    version: int
    min_reader: int
    min_writer: int


def migrate(
    url: str, schema: str | None = None, *, dry_run: bool = False, post: bool = False, to: Release = THIS,
    patience_s: float = PATIENCE_S,
) -> Migrated:  # fmt: skip
    """Do what is left of one phase. Raises `Conflict` while another does, or for `post` before all is added.

    `Unavailable` where transactions of others stand in the way for too long, `UpgradeRequired` for the store of a
    later relet.
    """
    url, schema = located(url, schema)
    conninfo, place, dialect = conninfo_of(url), place_of(url, schema), Dialect(schema)
    try:
        with connect(conninfo, place) as guard, connect(conninfo, place) as hand:
            can = _of_own_session(hand, place)
            upgrade = Upgrade(hand, place, dialect, can, to, patience_s)
            with contextlib.nullcontext() if dry_run else upgrade.alone(guard):
                was = upgrade.state()
                todo = upgrade.post(was) if post else upgrade.pre(was)
                if not dry_run:
                    for _, act in todo:
                        act()
                left = [] if post and not dry_run else upgrade.left_for_post(was)
        return Migrated(
            place=place, was=was.version, schema=max(was.version, to.schema), backup=None, dry_run=dry_run,
            steps=list(dict.fromkeys(name for name, _ in todo)), left=left,
        )  # fmt: skip
    except pg.InsufficientPrivilege as wrong:
        raise Forbidden(
            f"{place}: only the owner of the tables may migrate them ({told_by(wrong)}); what was not yet done is "
            "not done. Run it as that role, or as a member of it",
            code="RELET-RIGHTS",
        ) from wrong  # fmt: skip
    except psycopg.Error as wrong:
        raise translated(wrong, place) from wrong


Todo = list[tuple[str, Callable[[], None]]]


class Upgrade:
    """One store under one migrator's hand."""

    def __init__(
        self, hand: Connection, place: str, dialect: Dialect, can: Capabilities, to: Release, patience_s: float
    ) -> None:
        self._hand, self._place, self._dialect, self._can, self._to = hand, place, dialect, can, to
        self._steps = steps(to.folder, to.schema, to.min_writer)
        self._until = time.monotonic() + patience_s
        self._guard_pid = 0

    @contextlib.contextmanager
    def alone(self, guard: Connection) -> Iterator[None]:
        """One migrator at a time: an open transaction with one row locked, which ends with whoever holds it."""
        self._guard_pid = guard.info.backend_pid
        self._set(guard, lock_timeout=LOCK_MS, statement_timeout=0, idle_in_transaction_session_timeout=0)
        self._set(self._hand, lock_timeout=LOCK_MS, statement_timeout=0, idle_in_transaction_session_timeout=0)
        self.state()
        with guard.transaction(force_rollback=True):
            try:
                self._one("make_turn", connection=guard)
                taken = self._one("take_turn", connection=guard)
            except pg.LockNotAvailable:
                taken = None
            if taken is None:
                raise Conflict(f"{self._place}: somebody else migrates it now; wait for that", code="RELET-IN-USE")
            yield

    def state(self) -> State:
        """As the store says. Raises `NotFound` where there is none, `UpgradeRequired` for that of a later relet."""
        try:
            row = self._one("read_state")
        except (pg.UndefinedTable, pg.InvalidSchemaName) as none:
            raise NotFound(
                f"{self._place}: there is no store in schema {self._dialect.schema}; the first client makes one, of "
                "the newest form",
                code="RELET-NOT-A-STORE",
            ) from none  # fmt: skip
        if row is None:
            raise row_gone(self._place)
        state = State(*row)
        check_open(self._place, state.min_reader)
        check_reader(self._place, state.version, state.min_reader, self._to.schema)
        return state

    def pre(self, was: State) -> Todo:
        """What is added, then the version; and the settings of tables, where somebody has changed them."""
        todo: Todo = []
        for step in self._steps:
            if step.number > was.version:
                todo += [(step.name, self._doing(text)) for text in step.pre]
        if todo:
            todo.append((todo[-1][0], lambda: self._within("set_version", version=self._to.schema)))
        for name in untuned(self._hand, self._dialect) if self._can.tuning else ():
            todo += [("tuning.sql", self._doing(text)) for text in statements(TUNING[name])]
        return todo

    def post(self, was: State) -> Todo:
        """What only older clients needed leaves, in the transaction that shuts them out."""
        if was.version < self._to.schema:
            raise Conflict(
                f"{self._place} has schema {was.version}: first add what schema {self._to.schema} has, then bring "
                "all its programs up to date → relet migrate",
                code="RELET-UPGRADE", version=was.version, schema=self._to.schema,
            )  # fmt: skip
        names = self.left_for_post(was)
        texts = [text for step in self._steps if step.number > was.min_writer for text in step.post]
        if not names:
            return []
        todo: Todo = [(names[0], self._doing(text)) for text in texts if is_alone(text)]
        todo.append((names[0], lambda: self._contract([text for text in texts if not is_alone(text)])))
        return todo + [(name, lambda: None) for name in names]

    def left_for_post(self, was: State) -> list[str]:
        """The steps that wait until all clients are of this relet."""
        if was.min_writer >= self._to.min_writer and was.min_reader >= self._to.min_reader:
            return []
        return [
            step.name for step in self._steps
            if max(1, min(was.min_writer, was.min_reader)) < step.number
            <= max(self._to.min_writer, self._to.min_reader)
        ]  # fmt: skip

    # -- one statement -------------------------------------------------------------------------------------------

    def _doing(self, text: str) -> Callable[[], None]:
        text = in_dialect(text, self._dialect)
        if is_alone(text):
            return lambda: self._beside(text)
        return lambda: self._patiently(lambda: self._hand.execute(text))

    def _contract(self, texts: list[str]) -> None:
        def work() -> None:
            with self._hand.transaction():
                # First, so that nobody who has read the old row is left, and nobody reads it any more.
                statement("lock_all_out", self._dialect).row(self._hand, {})
                self._one("set_least", reader=self._to.min_reader, writer=self._to.min_writer)
                for text in texts:
                    self._hand.execute(in_dialect(text, self._dialect))

        self._patiently(work)

    def _within(self, name: str, /, **params: Any) -> None:
        def work() -> None:
            with self._hand.transaction():
                self._one("lock_meta_row")
                self._one(name, **params)

        self._patiently(work)

    def _beside(self, text: str) -> None:
        """An index, made or dropped beside its table's users; what a killed migrator left of it goes first."""
        self._set(self._hand, lock_timeout=ALONE_MS)
        try:
            if made := MADE.match(text):
                name, table = made[1], made[2]
                with self._hand.transaction():
                    # The server may still be at work on what was asked for by one that is gone.
                    self._hand.execute(f"LOCK TABLE {table} IN SHARE UPDATE EXCLUSIVE MODE")
                valid = self._one("is_index_valid", schema=self._dialect.schema, name=name)
                if valid is not None and not valid[0]:
                    self._hand.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {quoted(self._dialect.schema)}.{name}")
            self._hand.execute(text)
        except pg.LockNotAvailable as wrong:
            raise self._kept_out() from wrong
        finally:
            with contextlib.suppress(psycopg.Error):
                self._set(self._hand, lock_timeout=LOCK_MS)

    def _patiently(self, work: Callable[[], object]) -> None:
        while True:
            try:
                work()
            except (pg.LockNotAvailable, pg.DeadlockDetected) as wrong:
                if time.monotonic() >= self._until:
                    raise self._kept_out() from wrong
                time.sleep(random.uniform(PAUSE_S_MIN, PAUSE_S_MAX))
            else:
                return

    def _kept_out(self) -> Error:
        known = numbered(UPGRADE_SQL["find_blockers"], self._dialect)
        rows = self._hand.execute(known.text, known.values({
            "guard": self._guard_pid, "schema": self._dialect.schema,
        })).fetchall()  # fmt: skip
        who = ", ".join(f"{name} (process {pid} of the server) for {seconds} s" for pid, name, seconds in rows)
        return Unavailable(
            f"{self._place}: open transactions of others kept the migration from a table: {who or 'gone by now'}. "
            "What is done stays done, and nobody was kept waiting; end them, or wait, and run it again",
            code=BUSY, pids=[pid for pid, *_ in rows],
        )  # fmt: skip

    def _one(self, name: str, /, *, connection: Connection | None = None, **params: Any) -> Any:
        return numbered(UPGRADE_SQL[name], self._dialect).row(connection or self._hand, params)

    @staticmethod
    def _set(connection: Connection, **settings: int) -> None:
        for name, value in settings.items():
            connection.execute(f"SET {name} = {value}")


def _of_own_session(connection: Connection, place: str) -> Capabilities:
    can = probe(connection)
    if not can.own_session:
        raise Conflict(
            f"{place} is a pooler: sessions there are not one's own, and a migration needs one. Run it with the "
            "address of the server itself",
            code="RELET-POOLER",
        )  # fmt: skip
    return can
