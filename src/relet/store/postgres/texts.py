"""The statements of the engine as one store sends them: its schema's name in them, and parameters by number."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

import msgspec
import psycopg

from relet.core.tx import LeaseRow, TaskRow
from relet.core.work_tx import EffectRow, StepRow, WaitRow
from relet.store.postgres.place import DEFAULT_SCHEMA, quoted
from relet.store.runner import Params
from relet.store.sql import LISTED, STATEMENTS
from relet.store.sql_figures import FIGURES_STATEMENTS
from relet.store.sql_keys import KEY_STATEMENTS
from relet.store.sql_prune import PRUNE_STATEMENTS
from relet.store.sql_turns import TURN_STATEMENTS
from relet.store.sql_waiting import WAITING_STATEMENTS
from relet.store.sql_work import WORK_STATEMENTS
from relet.store.statements import load

PACKAGE: Final = "relet.store.postgres"
NOT_HERE: Final = frozenset([
    "read_meta", "read_min_reader", "count_tables", "set_tokens", "look_endings", "link_event", "look_run",
    "extend_run", "count_submitted", "count_takeover", "rebase_clock", "insert_rejection",
])  # fmt: skip
"""What the embedded engine asks and this one does not."""
HERE: Final = frozenset([
    "set_terms", "begin_meta", "begin_to_read", "read_clock", "read_version", "lock_all_out", "lock_meta",
    "settle_meta", "settle_run", "restart_tokens", "next_token", "forget_lapses", "forget_keys", "lock_lease_of",
    "lock_free_leases",
    "make_queue", "hold_request", "forget_requests", "find_takers", "pause",
    "lock_queue", "make_key", "lock_key", "add_totals", "find_leases", "find_gap", "newest_event",
    "are_events_coming", "move_leases", "move_delays",
])  # fmt: skip
HOT: Final = frozenset([
    "insert_lease_all", "add_event_all", "take_task_all", "end_lease_all", "complete_task_all",
    "insert_rejection_all", "look_endings", "insert_tasks", "find_tombstones", "is_anything_due", "claim_plain",
    "complete_one", "complete_plain",
])  # fmt: skip
SQL: Final = {
    **load(PACKAGE, "statements.sql rows.sql", (STATEMENTS - NOT_HERE) | HERE),
    **load(PACKAGE, "work.sql", WORK_STATEMENTS),
    **load(PACKAGE, "figures.sql", FIGURES_STATEMENTS),
    **load(PACKAGE, "waiting.sql", WAITING_STATEMENTS),
    **load(PACKAGE, "prune.sql", PRUNE_STATEMENTS - {"count_pruned"} | {"count_taken_over", "add_pruned"}),
    **load(PACKAGE, "turns.sql", TURN_STATEMENTS | {"lock_all_tasks", "wait_for_takers"}),
    **load(PACKAGE, "keys.sql", KEY_STATEMENTS),
    **load(PACKAGE, "hot.sql", HOT),
}
RESERVING: Final = frozenset(["lock_ready", "lock_ready_of", "look_ahead"])
"""Their last column but one is the lower half of a token, drawn when all of their rows were held."""
CLOCKED: Final = frozenset(name for name, text in SQL.items() if "{clock}" in text)
"""Their last column is the server's clock, read when all of their rows were held."""
JUDGED: Final = frozenset(
    name for name in CLOCKED if "SELECT l.*" in SQL[name] and "FOR UPDATE" in SQL[name] and "SKIP" not in SQL[name]
)
"""They lock leases that a rule has asked for, and judges; their first columns are those of a lease."""
CLOCK_MS: Final = "floor(date_part('epoch', clock_timestamp()) * 1000)::bigint"
"""In floating point, at a tenth of the price; within a microsecond of a full one it may read one millisecond less."""
STORE_NOW_MS: Final = f"({CLOCK_MS} + (SELECT ahead_ms FROM relet.meta WHERE one = 1))"  # noqa: S608 - no values
FREE: Final = (
    "(t.exclusive IS NULL OR NOT EXISTS (SELECT 1 FROM relet.leases l WHERE l.tenant = t.tenant "
    "AND l.exclusive = t.exclusive AND l.exclusive IS NOT NULL AND l.ended IS NULL AND l.expires_ms > :now_ms))"
)
"""Does nobody hold the key of a task, which it is to be held alone by; index leases_exclusive."""
# When it was started, the file of a table with its database's number, and the timeline: what is different after a
# restart, after tables were put back from a dump or a database from a copy of it, and after a failover.
SERVER: Final = (
    "concat((extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint, '/', "
    "pg_relation_filepath(to_regclass('relet.run')), '/', "
    "left(pg_walfile_name(pg_current_wal_lsn()), 8))"
)
# Who cannot tell takes the word of those who can, and the row that is there for that of this run: it writes one only
# where there is none, and so finds at least what empties the table.
UNTOLD: Final = "(SELECT coalesce(max(told.server), 'unknown') FROM relet.run told)"
COLUMNS: Final = {
    alias: ", ".join(f"{alias}.{name}" for name in row.__struct_fields__)
    for alias, row in (("t", TaskRow), ("l", LeaseRow), ("s", StepRow), ("w", WaitRow), ("e", EffectRow))
}
"""What a star stands for, by the name that a text gives to the table: a column that a later relet has added is not
among them, and so changes neither rows nor the form of what a server has prepared."""
_STAR: Final = re.compile(rf"\b([{''.join(COLUMNS)}])\.\*")
_PARAMETER: Final = re.compile(r"(?<![:\w]):([a-z]\w*)")
_LOCK: Final = re.compile(r" FOR UPDATE( OF \w+(, \w+)*)?( SKIP LOCKED)?")
_LIMIT: Final = "\x00"


class Dialect(NamedTuple):
    """How the statements of one store differ from their texts."""

    schema: str = DEFAULT_SCHEMA
    skips_locked: bool = True
    knows_its_run: bool = True
    """Can the server say when it was started, and on which timeline it is."""
    steered: bool = False
    """Instants come from a clock of the caller's, for tests."""
    reads: bool = False
    """Nothing is written, and so nothing is locked: also on a standby."""


class Statement(NamedTuple):
    """A text with parameters by number, and their names in that order."""

    text: str
    names: tuple[str, ...]
    values: Callable[[Params], Sequence[Any]]
    has_limit: bool
    clocked: bool = False
    reserving: bool = False
    judged: bool = False

    def row(self, asked: psycopg.Connection[Any], params: Params) -> Any:
        """The one row that it answers; None for none."""
        cursor = asked.execute(self.text, self.values(params))
        return cursor.fetchone() if cursor.description else None

    def with_limit(self, limit: int) -> str:
        """A limit stands in the text: as a parameter it would be planned for as a tenth of the table."""
        return self.text.replace(_LIMIT, str(int(limit)))


@cache
def statement(name: str, dialect: Dialect) -> Statement:
    """A statement as one store sends it, made when it is first asked for."""
    made = numbered(SQL[name], dialect)
    made = made._replace(clocked=name in CLOCKED, reserving=name in RESERVING, judged=name in JUDGED)
    if name in LISTED and not set(made.names) <= set(LISTED[name]):
        raise LookupError(f"{name}: has the parameters {list(made.names)}, {list(LISTED[name])} are listed")
    return made


def numbered(text: str, dialect: Dialect) -> Statement:
    """A text with its parameters by number."""
    text = in_dialect(text, dialect)
    found = dict.fromkeys(_PARAMETER.findall(text))
    has_limit = found.pop("limit", 0) is None
    names = tuple(found)
    numbers = {each: f"${n}" for n, each in enumerate(names, 1)} | {"limit": _LIMIT}
    return Statement(_PARAMETER.sub(lambda match: numbers[match[1]], text), names, _values(names), has_limit)


@cache
def picked(name: str, dialect: Dialect) -> Callable[[tuple[Any, ...]], Sequence[Any]]:
    """From values in the order of `LISTED` to those that the text has, in its own order."""
    at = [LISTED[name].index(each) for each in statement(name, dialect).names]
    return lambda values: [values[n] for n in at]


KEYS: Final = frozenset(["token", "task_seq", "seq"])
"""Columns that are different in each row, were there one row alone."""
_COLUMN: Final = re.compile(r"\{(\w+):(\w+)\}")


def many_of(
    name: str, rows: Sequence[tuple[Any, ...]], order: tuple[str, ...], dialect: Dialect
) -> tuple[str, list[Any]]:
    """A statement for many rows, whose values come in this order, and what to send with it."""
    columns = list(zip(*rows, strict=True))
    values: dict[str, Any] = {}
    varying = set()
    for n, column in _places(name, order):
        first = columns[n][0]
        if column in KEYS or columns[n].count(first) < len(rows):
            varying.add(column)
            values[column] = array_of(columns[n])
        else:
            values[column] = first
    text, names = _for_many(name, dialect, frozenset(varying))
    return text, [values[each] for each in names]


@cache
def _places(name: str, order: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    return tuple((order.index(column), column) for column, _ in _COLUMN.findall(SQL[f"{name}_all"]))


@cache
def _for_many(name: str, dialect: Dialect, varying: frozenset[str]) -> tuple[str, tuple[str, ...]]:
    text = in_dialect(SQL[f"{name}_all"], dialect)
    types = dict(_COLUMN.findall(text))
    names = tuple(types)
    numbers = {each: n for n, each in enumerate(names, 1)}
    inner = [each for each in names if each in varying]
    arrays = ", ".join(f"${numbers[each]}::{types[each]}[]" for each in inner)
    text = text.replace("{rows}", f"unnest({arrays}) AS u ({', '.join(inner)})")
    return _COLUMN.sub(
        lambda match: f"u.{match[1]}" if match[1] in varying else f"${numbers[match[1]]}::{match[2]}", text
    ), names


_ENCODER: Final = msgspec.json.Encoder()
_ESCAPED_OTHERWISE: Final = re.compile(rb'\\[^"\\]')
"""Perhaps; it also matches what stands behind a backslash of the text's own."""


def array_of(values: Sequence[Any]) -> str:
    """An array as the server reads it; the driver's own way asks each value for its type, and takes much longer.

    JSON writes most of them alike; not so what it escapes by a letter, such as the end of a line.
    """
    told = _ENCODER.encode(values)
    if _ESCAPED_OTHERWISE.search(told) is None:
        return f"{{{told[1:-1].decode()}}}"
    return "{" + ",".join([
        "NULL" if each is None else '"' + each.replace("\\", "\\\\").replace('"', '\\"') + '"'
        if isinstance(each, str) else str(each)
        for each in values
    ]) + "}"  # fmt: skip


def in_dialect(text: str, dialect: Dialect) -> str:
    """A text with what stands for this store in it."""
    clock = "0::bigint" if dialect.steered else CLOCK_MS
    text = text.replace("{free}", FREE)
    text = text.replace("{now_m}", ":now_ms::bigint" if dialect.steered else f"({CLOCK_MS} + m.ahead_ms)")
    text = text.replace("{now_ms}", ":now_ms::bigint" if dialect.steered else STORE_NOW_MS)
    text = text.replace("{wall_ms}", ":wall_ms::bigint" if dialect.steered else CLOCK_MS)
    text = _STAR.sub(lambda match: COLUMNS[match[1]], text)
    text = text.replace("{clock}", clock).replace("{server}", SERVER if dialect.knows_its_run else UNTOLD)
    if dialect.reads:
        text = _LOCK.sub("", text)
    if not dialect.skips_locked:
        text = text.replace(" SKIP LOCKED", "")
    return text if dialect.schema == DEFAULT_SCHEMA else text.replace("relet.", f"{quoted(dialect.schema)}.")


def _values(names: tuple[str, ...]) -> Callable[[Params], Sequence[Any]]:
    if len(names) < 2:  # noqa: PLR2004 - itemgetter answers a bare value for one name
        return lambda params: [params[name] for name in names]
    return itemgetter(*names)
