"""The feed of refused writes: written apart, without fsync, and never altering an answer."""

from __future__ import annotations

from typing import Final

import apsw

from relet.core import limits
from relet.core.errors import Error
from relet.store.runner import Refusal
from relet.store.sqlite.lane import Lane
from relet.store.sqlite.runner import SQL

PATIENCE_MS: Final = 250


def write_refusals(lane: Lane, verb: str, refusals: list[Refusal], wall_ms: int) -> None:
    """Count each refusal and keep the newest thousand; given up when the store stays busy."""
    try:
        lane.transact("BEGIN IMMEDIATE", lambda held: write_within(held, verb, refusals, wall_ms), PATIENCE_MS)
    except Error:
        # The refusal itself stands and is being told; its record is worth no second failure.
        return


def write_within(connection: apsw.Connection, verb: str, refusals: list[Refusal], wall_ms: int) -> None:
    """The same, within a transaction that is open."""
    for item in refusals:
        _write(connection, verb, item, wall_ms)
    connection.execute(SQL["trim_rejections"], {"kept": limits.REJECTIONS_KEPT})


def _write(connection: apsw.Connection, verb: str, item: Refusal, wall_ms: int) -> None:
    lease = item.lease
    if item.kept is not None:
        connection.execute(SQL["forget_result"], {"task_seq": lease.task_seq, "token": lease.token})
    connection.execute(SQL["insert_rejection"], {
        "task_seq": lease.task_seq, "tenant": lease.tenant, "task_id": item.task_id, "verb": verb,
        "holder": lease.holder, "token": lease.token, "current_token": item.current, "reason": item.reason,
        "late_ms": item.late_ms, "wall_ms": wall_ms, "result": item.kept,
    })  # fmt: skip
    connection.execute(SQL["count_rejection"], {"tenant": lease.tenant, "reason": item.reason})
