"""A fence in a PostgreSQL database of your own: the token is compared in the transaction that writes.

The block holds the lock of the fence's row. A holder that is stopped inside it blocks its successor, who gets
`Unavailable` after `patience`; after `idle` the server ends the stopped one's session, and the way is free.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import errors, sql
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from relet.core import border, limits
from relet.core.errors import Error, OutcomeUnknown, Unavailable
from relet.core.holding import check_held
from relet.core.statements import named
from relet.fences.admission import busy, held, stale, undone

WHERE: Final = "PostgresFence"
TEXTS: Final = named(
    Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"),
    ("make_table", "set_limits", "raise_fence", "read_fence", "find_table", "make_guard", "guard_table"),
    "fences/postgres.sql",
)
MADE_MEANWHILE: Final = (errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateObject)
ENDED_BY_SERVER: Final = (errors.IdleInTransactionSessionTimeout, errors.AdminShutdown)


class PostgresFence:
    """Guards resources in the PostgreSQL database of a blocking psycopg connection.

    The table `relet_fence` is in `schema`; it is made when it is first needed, or by `install()`. `patience` bounds
    every wait for a lock inside the block; `idle` is how long the block may pause between two statements before the
    server ends the session. Raises `Invalid` for any other kind of connection.
    """

    def __init__(
        self,
        conn: psycopg.Connection[Any],
        *,
        schema: str = "public",
        patience: Any = limits.FENCE_PATIENCE_MS / 1_000,
        idle: Any = limits.FENCE_IDLE_MS / 1_000,
    ) -> None:
        if not isinstance(conn, psycopg.Connection):
            raise border.invalid("conn", f"{border.shown(conn)} is no psycopg.Connection; an asynchronous one is not")
        self._conn = conn
        self._schema = border.name("schema", schema)
        # Zero would mean to PostgreSQL: without end.
        self._patience_ms = border.duration_ms("patience", patience, least=1)
        self._idle_ms = border.duration_ms("idle", idle, least=1)
        self._made = False

    def install(self) -> None:
        """Make the table; for an administrator, where the writers may not. Repeating it is safe."""
        with contextlib.suppress(*MADE_MEANWHILE), self._transaction():
            self._conn.execute(self._text("make_table"))
        self._made = True

    def raise_to(self, resource: str, token: int) -> None:
        """Accept nothing smaller than this token from now on. Raises `StaleToken`, `Unavailable`, `Invalid`."""
        with self.write(resource, token):
            pass

    @contextlib.contextmanager
    def write(self, resource: str, token: int) -> Iterator[psycopg.Connection[Any]]:
        """Your connection inside a transaction that is committed at the end of the block, and undone by an exception.

        Raises `StaleToken` before the block begins; `Unavailable` when nothing was written, `OutcomeUnknown` when
        the connection broke during the commit; `Invalid` for a connection that is inside a transaction already.
        """
        resource, token = held(resource, token)
        self._find_table()
        with self._transaction():
            self._admit(resource, token)
            yield self._conn
            check_held(token)

    def protect(self, table: str, *, schema: str = "public") -> None:
        """Triggers that refuse every insert, update, delete and truncate of the table outside `write`.

        They see ad-hoc writers too; a superuser can switch them off. Raises `Invalid` without the table.
        """
        names = border.name("schema", schema), border.name("table", table)
        self._find_table()
        with self._transaction():
            if names == (self._schema, "relet_fence") or not self._rows("find_table", names):
                raise border.invalid("table", f"{border.shown(table)} is no table of {schema} that can be guarded")
            self._conn.execute(self._text("make_guard"))
            self._conn.execute(self._text("guard_table", table=sql.Identifier(*names)))

    def _find_table(self) -> None:
        if self._made:
            return
        with self._transaction():
            self._made = bool(self._rows("find_table", (self._schema, "relet_fence")))
        if not self._made:
            self.install()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        status, committing = self._conn.info.transaction_status, False
        if status is TransactionStatus.UNKNOWN:
            raise undone(WHERE, psycopg.OperationalError("the connection is closed"))
        if status is not TransactionStatus.IDLE:
            raise border.invalid(
                "conn", "is inside a transaction already (without autocommit a single SELECT begins one); commit it "
                "or roll it back first",
            )  # fmt: skip
        try:
            with self._conn.transaction():
                yield
                committing = True
        except psycopg.Error as wrong:
            told = self._told(wrong, committing=committing)
            if told is None:
                raise  # about the user's own statements; the transaction is undone
            raise told from wrong

    def _told(self, wrong: psycopg.Error, *, committing: bool) -> Error | None:
        match wrong:
            case errors.IdleInTransactionSessionTimeout():
                return self._ended(wrong)  # before it has read a COMMIT
            case errors.AdminShutdown() if not committing:
                return self._ended(wrong)
            case errors.SerializationFailure() | errors.DeadlockDetected() if committing:
                return undone(WHERE, wrong)
            case psycopg.OperationalError() if committing:
                return OutcomeUnknown(
                    f"{WHERE}: the connection broke during the commit ({wrong}); look before you repeat",
                    code="RELET-COMMIT",
                )
            case _:
                return undone(WHERE, wrong) if self._conn.closed else None

    def _admit(self, resource: str, token: int) -> None:
        limits_ms = [str(self._patience_ms), str(self._idle_ms)]
        try:
            self._rows("set_limits", [*limits_ms, resource, str(token)])
            if self._rows("raise_fence", (resource, token)):
                return
            ((current,),) = self._rows("read_fence", (resource,))
        except errors.LockNotAvailable as wrong:
            raise busy(WHERE, resource, self._patience_ms, "an earlier writer's open transaction") from wrong
        except ENDED_BY_SERVER:
            raise  # told where the transaction ends
        except psycopg.Error as wrong:
            raise undone(WHERE, wrong) from wrong
        raise stale(WHERE, resource, token, current)

    def _rows(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        # Plain rows, whatever kind the connection makes for its user.
        with self._conn.cursor(row_factory=tuple_row) as cursor:
            return cursor.execute(self._text(statement), values).fetchall()

    def _text(self, statement: str, **names: sql.Composable) -> sql.Composed:
        fence, guard = (sql.Identifier(self._schema, name) for name in ("relet_fence", "relet_fence_guard"))
        return sql.SQL(TEXTS[statement]).format(fence=fence, guard=guard, **names)

    def _ended(self, wrong: psycopg.Error) -> Error:
        return Unavailable(
            f"{WHERE}: the server ended the session, and undid the block: it paused for more than "
            f"{self._idle_ms / 1_000:g} s between two statements, or the server went down ({wrong}). Nothing was "
            "written; keep model calls and waits outside the block, connect again, and repeat it",
            code="RELET-FENCE-IDLE",
        )  # fmt: skip
