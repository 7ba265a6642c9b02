"""tx=: the open transaction of a user's, on a connection of the user's."""

from __future__ import annotations

import threading
import weakref
from typing import Any, Final, TypeVar

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import tuple_row

from relet.core.errors import Invalid
from relet.store.postgres.adapters import Lent

Given = psycopg.Connection[Any]
C = TypeVar("C", bound=Given)
CODEC: Final = "utf-8"
_NOT_OPEN: Final = {
    TransactionStatus.IDLE: "has no transaction open; begin one, as in with connection.transaction(): ...",
    TransactionStatus.INERROR: "is a transaction that an error has ended; roll it back, and do all of it anew",
    TransactionStatus.ACTIVE: "is at work on a statement of another thread; use a connection for each thread",
    TransactionStatus.UNKNOWN: "is closed, or was lost, and its transaction with it; connect anew",
}
_turns: weakref.WeakKeyDictionary[Given, threading.Lock] = weakref.WeakKeyDictionary()
_turns_lock = threading.Lock()


def turn_on(connection: Given) -> threading.Lock:
    """Held for one call: the savepoints of two would end in each other's order."""
    with _turns_lock:
        return _turns.setdefault(connection, threading.Lock())


def check_kind(connection: Any) -> Given:
    """Raises `Invalid` for what is no connection that one can ask."""
    if isinstance(connection, psycopg.Connection):
        return connection
    what = "an asynchronous connection" if isinstance(connection, psycopg.AsyncConnection) else "no connection"
    raise Invalid(
        f"tx: is {what} of psycopg's, but {type(connection).__name__}; give one of psycopg.connect(...) with an open "
        "transaction",
        field="tx",
    )


def check_open(connection: Given) -> None:
    """Raises `Invalid` for a connection within which nothing can be asked as it is now."""
    why = None
    if (status := connection.info.transaction_status) is not TransactionStatus.INTRANS:
        why = _NOT_OPEN[status]
        if status is TransactionStatus.ACTIVE and connection.pgconn.pipeline_status != PipelineStatus.OFF:
            why = "has a pipeline whose answers are not there yet; leave it, or sync() it, before"
    elif connection.info.encoding != CODEC:
        name = connection.info.parameter_status("client_encoding")
        why = f"sends text in {name}, which has not every letter; connect with client_encoding=utf8"
    if why is not None:
        raise Invalid(f"tx: {why}", field="tx")


def lent(connection: Given) -> psycopg.Cursor[Any]:
    """A cursor that asks in our way, whatever the connection is set to."""
    return Lent(connection, row_factory=tuple_row)
