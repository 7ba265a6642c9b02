"""The feed of refused writes: written apart, without a flush, and never altering an answer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import psycopg

from relet.core import limits
from relet.core.errors import Error
from relet.store.postgres.texts import Dialect, many_of, statement
from relet.store.postgres.transact import TO_WRITE, Undone, transact
from relet.store.runner import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from relet.store.postgres.engine import PostgresStore

PATIENCE_S: Final = 0.5
EACH_S: Final = 0.005
"""More for each of many refusals, which one batch may have."""


def write_refusals(store: PostgresStore, verb: str, refusals: list[Refusal]) -> None:
    """Count each refusal and keep the newest thousand; given up when the store stays busy."""
    wall_ms = store.clock.instants(0, 0).wall_ms if store.clock.steered else None
    try:
        # Not on the connection of the heartbeats, which wait for nobody's counters.
        with store.calls.borrowed(PATIENCE_S, PATIENCE_S + EACH_S * len(refusals)) as connection:
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
    for item in refusals:
        if item.kept is not None:
            do("forget_result", task_seq=item.lease.task_seq, token=item.lease.token)
    rows = [_row(item, verb, wall_ms) for item in refusals[-limits.REJECTIONS_KEPT :]]
    text, values = many_of("insert_rejection", rows, COLUMNS, dialect)
    cursor().execute(text, values)
    do("trim_rejections", kept=limits.REJECTIONS_KEPT)
    # Counters last, in the order of their keys: nobody waits for another with one of them locked.
    counts = Counter((item.lease.tenant, str(item.reason)) for item in refusals)
    for (tenant, reason), n in sorted(counts.items()):
        do("count_rejection", tenant=tenant, reason=reason, n=n)


COLUMNS: Final = (
    "task_seq", "tenant", "task_id", "verb", "holder", "token", "current_token", "reason", "late_ms", "wall_ms",
    "result",
)  # fmt: skip


def _row(item: Refusal, verb: str, wall_ms: int) -> tuple[Any, ...]:
    lease = item.lease
    return (
        lease.task_seq, lease.tenant, item.task_id, verb, lease.holder, lease.token, item.current, str(item.reason),
        item.late_ms, wall_ms, item.kept,
    )  # fmt: skip
