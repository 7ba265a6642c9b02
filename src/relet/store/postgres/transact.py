"""One transaction on a connection: what it sends, how it ends, and what is known of its end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.pq import TransactionStatus

from relet.store.postgres.connect import Connection
from relet.store.postgres.faults import Notice, Retry, retry_of, unknown_outcome
from relet.store.postgres.line import Line

A = TypeVar("A")
TO_WRITE: Final = "BEGIN"
TO_READ: Final = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
TO_READ_ON: Final = "BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY"
"""Each statement sees what was committed before it."""
BOUND: Final = "SELECT set_config($1, '0', true), set_config($1, $2, true)"
"""Twice: a time that runs already is set anew only once it was stopped."""


class Undone(Exception):
    """The transaction was undone, or was never begun; its cause says why."""

    def __init__(self, wrong: psycopg.Error, retry: Retry) -> None:
        super().__init__(str(wrong))
        self.wrong, self.retry = wrong, retry


def transact(connection: Line, begin: str, work: Callable[[], A], most_s: float | None = None) -> A:
    """Run `work` between `begin` and COMMIT; anything raised rolls back.

    Statements are sent without waiting for each answer. The server ends what is open for longer than `most_s`, else
    than its session says. Raises `Undone` for an error of the server's before the commit, `OutcomeUnknown` when
    nobody can say.
    """
    committing = False
    connection.notices.clear()
    try:
        with connection.pipeline() as pipeline:
            connection.cursor().execute(begin)
            if (most_s := most_s or connection.most_s) is not None:
                connection.cursor().execute(BOUND, [connection.bounded_by, str(int(most_s * 1_000))])
            answer = work()
            committing = True
            ended = connection.cursor().execute("COMMIT")
            pipeline.sync()
    except psycopg.Error as wrong:
        raise fallen(connection, wrong, committing=committing) from wrong
    except BaseException:
        _rollback(connection)
        raise
    check_end(ended.statusmessage, connection.notices)
    return answer


def alone(connection: Line, work: Callable[[], A]) -> A:
    """As `transact`, for work that is one statement, which the server commits by itself."""
    connection.notices.clear()
    try:
        answer = work()
    except psycopg.Error as wrong:
        raise fallen(connection, wrong, committing=True) from wrong
    check_end("COMMIT", connection.notices)
    return answer


def fallen(connection: Connection, wrong: psycopg.Error, *, committing: bool) -> Exception:
    """What is known of a transaction that an error ended."""
    is_broken = connection.closed or connection.broken
    _rollback(connection)
    # An error on a connection that goes on came before the commit, or from it: both undo all of it.
    if committing and (is_broken or wrong.sqlstate is None):
        return unknown_outcome(f"the connection ended within the commit ({type(wrong).__name__})")
    if not connection.closed and connection.info.parameter_status("in_hot_standby") == "on":
        # What it refuses first is not always the writing: it has no unlogged tables, and no position to write at.
        wrong = pg.ReadOnlySqlTransaction("the server is a standby")
    undone = Undone(wrong, retry_of(wrong, is_broken=is_broken))
    if undone.retry is Retry.RECONNECT:
        # Also where the server let it live: it is not to be met again by the next try.
        connection.close()
    return undone


def check_end(said: str | None, notices: list[Notice]) -> None:
    """Raises `OutcomeUnknown` for a commit that is none, or that only this server has."""
    if said != "COMMIT":
        raise unknown_outcome(f"the server answered the commit with {said}")
    if any(notice.is_unreplicated for notice in notices):
        raise unknown_outcome("the server committed, and did not wait until its standby had it as well")


def _rollback(connection: Connection) -> None:
    with contextlib.suppress(psycopg.Error):
        if not connection.closed and connection.info.transaction_status is not TransactionStatus.IDLE:
            connection.rollback()
