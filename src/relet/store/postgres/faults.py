"""The server's errors as ours, and which of them a second try may mend."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import errors as pg

from relet.core.errors import DAMAGED, Error, Forbidden, Invalid, OutcomeUnknown, Unavailable


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
READ_ONLY: Final = "RELET-READ-ONLY"
_WAIT_FOR_STANDBY: Final = "SyncRepWaitForLSN"
"""The function of the server that warns of a commit which its standby may not have."""
_NEVER: Final = re.compile(
    r'invalid ("?\w+"? value|integer value|port number|value for parameter)|definition of service .*not found|'
    r"service file .*not found|could not match \d|bad value for |unrecognized configuration parameter"
)
"""What is said of a setting of the connection, rather than of a server."""


def retry_of(wrong: psycopg.Error, *, is_broken: bool) -> Retry:
    """May the same transaction be tried again, and on which connection."""
    if isinstance(wrong, COLLISIONS):
        return Retry.RECONNECT if is_broken else Retry.NOW
    if isinstance(wrong, GOING) or is_broken:
        return Retry.RECONNECT
    if isinstance(wrong, psycopg.OperationalError) and wrong.sqlstate is None:
        return Retry.RECONNECT
    return Retry.NEVER


class Notice(NamedTuple):
    """What a server remarks beside its answers, without its words: those are in the language that it is set to."""

    sqlstate: str | None
    severity: str | None
    source: str | None
    """The function of the server that says so."""

    @property
    def is_unreplicated(self) -> bool:
        """It has committed, and has not waited until its standby had it as well.

        A trigger may warn with the same code, and tells by its source that it did.
        """
        is_warning = self.severity == "WARNING" and self.sqlstate == "01000"
        return self.source == _WAIT_FOR_STANDBY or (is_warning and self.source is None)


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
        case pg.QueryCanceled():
            return Unavailable(
                f"{place}: the server cut a statement short ({told}); nothing was written. Somebody cancelled it; or "
                "a statement_timeout of this role, the database or the server is too short: give relet's role more, "
                "as in ALTER ROLE … SET statement_timeout = '10s'",
                code="RELET-CANCELLED", **facts,
            )  # fmt: skip
        case pg.LockNotAvailable() | pg.DeadlockDetected() | pg.SerializationFailure():
            return Unavailable(
                f"{place}: other transactions kept this one from its rows ({told}); nothing was written, try again",
                code=BUSY, **facts,
            )  # fmt: skip
        case pg.ReadOnlySqlTransaction() | pg.ObjectNotInPrerequisiteState():
            return Unavailable(
                f"{place} is a standby, or set to read only: it refuses writes and nothing was written. Of several "
                "servers name all: postgresql://a,b/db?target_session_attrs=read-write. On a primary it is a "
                "setting of this role, the database or the server: ALTER ROLE … RESET default_transaction_read_only",
                code=READ_ONLY, **facts,
            )  # fmt: skip
        case pg.InsufficientPrivilege():
            return Forbidden(
                f"{place}: this role may not do that ({told}); nothing was written. To read it needs USAGE on the "
                "schema, and SELECT on all its tables and sequences; to write as well INSERT, UPDATE, DELETE on all "
                "its tables, and USAGE, UPDATE on all its sequences. Grant it those, or connect as their owner",
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
    if isinstance(wrong, pg.QueryCanceled):
        return translated(wrong, place)  # it was reached, and asked what it is set to
    told = told_by(wrong)
    facts: dict[str, Any] = {"engine": f"{type(wrong).__name__}: {told}", "sqlstate": wrong.sqlstate}
    if _NEVER.search(told):
        return Invalid(
            f"url: {place}: a setting can never work ({told}); nothing was written. Correct it in the URL, in a PG… "
            "of the environment, or where the service is defined",
            field="url", **facts,
        )  # fmt: skip
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
