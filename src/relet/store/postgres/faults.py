"""The server's errors as ours, and which of them a second try may mend."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import psycopg
from psycopg import errors as pg

from relet.core.errors import Error, Forbidden, Invalid, OutcomeUnknown, Unavailable


class Retry(Enum):
    """What is to be done about an error before the commit was sent."""

    NOW = "now"
    """Somebody else was first: again, after a short pause."""
    RECONNECT = "reconnect"
    """The connection, or the server, is gone: again on another one."""
    NEVER = "never"


COLLISIONS: Final = (
    pg.SerializationFailure, pg.DeadlockDetected, pg.LockNotAvailable, pg.UniqueViolation, pg.QueryCanceled,
)  # fmt: skip
GOING: Final = (
    pg.AdminShutdown, pg.CrashShutdown, pg.CannotConnectNow, pg.IdleInTransactionSessionTimeout,
    pg.TooManyConnections, pg.ReadOnlySqlTransaction,
)  # fmt: skip
"""A server that stops, starts, or has just become a standby."""
BUSY: Final = "RELET-BUSY"
DAMAGED: Final = "RELET-DAMAGED"
_COMMIT_WAIT: Final = "01000"


def retry_of(wrong: psycopg.Error, *, is_broken: bool) -> Retry:
    """May the same transaction be tried again, and on which connection."""
    if isinstance(wrong, COLLISIONS):
        return Retry.RECONNECT if is_broken else Retry.NOW
    if isinstance(wrong, GOING) or is_broken:
        return Retry.RECONNECT
    if isinstance(wrong, psycopg.OperationalError) and wrong.sqlstate is None:
        return Retry.RECONNECT
    return Retry.NEVER


def unknown_outcome(why: str) -> OutcomeUnknown:
    """The server did not say whether it was kept."""
    return OutcomeUnknown(
        f"{why}; it may or may not have been kept. Look, or repeat the same request", code="RELET-COMMIT"
    )


def translated(wrong: psycopg.Error, place: str) -> Error:
    """A server's error as one of ours; nothing was written."""
    told = told_by(wrong)
    facts: dict[str, Any] = {"engine": f"{type(wrong).__name__}: {told}", "sqlstate": wrong.sqlstate}
    match wrong:
        case pg.LockNotAvailable() | pg.DeadlockDetected() | pg.SerializationFailure() | pg.QueryCanceled():
            return Unavailable(
                f"{place}: other transactions kept this one from its rows ({told}); nothing was written, try again",
                code=BUSY, **facts,
            )  # fmt: skip
        case pg.ReadOnlySqlTransaction() | pg.ObjectNotInPrerequisiteState():
            return Unavailable(
                f"{place} is a standby, or set to read only: it refuses writes and nothing was written. Connect to "
                "the primary: name all servers, as in postgresql://a,b/db?target_session_attrs=read-write",
                code="RELET-READ-ONLY", **facts,
            )  # fmt: skip
        case pg.InsufficientPrivilege():
            return Forbidden(
                f"{place}: this role may not do that ({told}); nothing was written. Grant it USAGE on the schema; "
                "SELECT, INSERT, UPDATE, DELETE on all its tables; SELECT, USAGE, UPDATE on all its sequences; or "
                "connect as their owner",
                code="RELET-RIGHTS", **facts,
            )  # fmt: skip
        case pg.DiskFull() | pg.OutOfMemory() | pg.InsufficientResources():
            return Unavailable(
                f"{place} has no room left ({told}); nothing was written. Free some and try again",
                code="RELET-FULL", **facts,
            )  # fmt: skip
        case pg.UndefinedTable() | pg.UndefinedColumn() | pg.InvalidSchemaName():
            return Unavailable(
                f"{place}: a table of the store is gone or has another form ({told}); nothing was written "
                "→ relet doctor",
                code=DAMAGED, **facts,
            )  # fmt: skip
        case _:
            return Unavailable(f"{place}: the server failed ({told}); nothing was written", **facts)


def unreachable(wrong: psycopg.Error, place: str) -> Error:
    """Why no connection came about, and what to look at."""
    told = told_by(wrong)
    facts: dict[str, Any] = {"engine": f"{type(wrong).__name__}: {told}", "sqlstate": wrong.sqlstate}
    lower = told.lower()
    if "password" in lower or "authentication" in lower or "no pg_hba.conf entry" in lower:
        return Forbidden(
            f"{place}: the server does not let this user in ({told}). Look at user and password of the URL, and at "
            "pg_hba.conf; a password can also come from PGPASSWORD or ~/.pgpass",
            code="RELET-LOGIN", **facts,
        )  # fmt: skip
    if "role" in lower and "does not exist" in lower:
        return Forbidden(f"{place}: {told}. Name a user that there is, or create it", code="RELET-LOGIN", **facts)
    if "database" in lower and "does not exist" in lower:
        return Invalid(
            f"url: {place}: {told}. Name a database that there is, or create it: createdb", field="url", **facts
        )
    return Unavailable(
        f"{place} cannot be reached ({told}); nothing was written. Is the server up, and are host and port of the "
        "URL right?",
        code="RELET-UNREACHABLE", **facts,
    )  # fmt: skip


def told_by(wrong: psycopg.Error) -> str:
    """The server's own words, in one line."""
    primary = wrong.diag.message_primary
    return " ".join((primary or str(wrong) or type(wrong).__name__).split())
