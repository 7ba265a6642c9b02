"""The feed of refused writes: written apart, without a flush, and never altering an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg

from relet.core import limits
from relet.core.errors import Error
from relet.store.postgres.texts import Dialect, statement
from relet.store.postgres.transact import TO_WRITE, Undone, transact
from relet.store.runner import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from relet.store.postgres.engine import PostgresStore

PATIENCE_S: Final = 0.25


def write_refusals(store: PostgresStore, verb: str, refusals: list[Refusal]) -> None:
    """Count each refusal and keep the newest thousand; given up when the store stays busy."""
    wall_ms = store.clock.instants(0, 0).wall_ms if store.clock.steered else None
    try:
        with store.beats.borrowed(PATIENCE_S) as connection:
            transact(
                connection, TO_WRITE,
                lambda: write_within(connection.cursor, store.dialect, verb, refusals, wall_ms, light=True),
            )  # fmt: skip
    except (Undone, Error, psycopg.Error):
        # The refusal itself stands and is being told; its record is worth no second failure.
        return


def write_within(
    cursor: Callable[[], psycopg.Cursor[Any]], dialect: Dialect, verb: str, refusals: list[Refusal],
    wall_ms: int | None, *, light: bool = False,
) -> None:  # fmt: skip
    """The same, within a transaction that is open."""

    def do(name: str, **params: Any) -> None:
        known = statement(name, dialect)
        cursor().execute(known.text, known.values(params))

    if light:
        cursor().execute(
            "SELECT set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '250', true)"
        )
    if wall_ms is None:
        row = cursor().execute(statement("read_clock", dialect).text).fetchone()
        assert row is not None, "a clock answers"
        wall_ms = row[0]
    # Counters last, in the order of their keys: nobody waits for another with one of them locked.
    for item in refusals:
        lease = item.lease
        if item.kept is not None:
            do("forget_result", task_seq=lease.task_seq, token=lease.token)
        do(
            "insert_rejection", task_seq=lease.task_seq, tenant=lease.tenant, task_id=item.task_id, verb=verb,
            holder=lease.holder, token=lease.token, current_token=item.current, reason=str(item.reason),
            late_ms=item.late_ms, wall_ms=wall_ms, result=item.kept,
        )  # fmt: skip
    do("trim_rejections", kept=limits.REJECTIONS_KEPT)
    for item in sorted(refusals, key=lambda one: (one.lease.tenant, str(one.reason))):
        do("count_rejection", tenant=item.lease.tenant, reason=str(item.reason))
