"""One open transaction on a connection: statements by name, the clock, the tokens, the numbers of events."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import attrgetter, itemgetter
from typing import Any, Final

import apsw
import msgspec

from relet.core import limits
from relet.core.model import Instants
from relet.core.tx import LeaseRow
from relet.store.migrate import SCHEMA, check_writer
from relet.store.rows import Row
from relet.store.runner import Params
from relet.store.sql import LISTED, STATEMENTS
from relet.store.sql_bonds import BOND_STATEMENTS
from relet.store.sql_figures import FIGURES_STATEMENTS
from relet.store.sql_keys import KEY_STATEMENTS
from relet.store.sql_prune import PRUNE_STATEMENTS
from relet.store.sql_turns import TURN_STATEMENTS
from relet.store.sql_waiting import WAITING_STATEMENTS
from relet.store.sql_work import WORK_STATEMENTS
from relet.store.sqlite.identity import Identity
from relet.store.sqlite.marks import Mark
from relet.store.statements import load

SQL: Final = {
    **load("relet.store.sqlite", "statements.sql rows.sql", STATEMENTS),
    **load("relet.store.sqlite", "work.sql", WORK_STATEMENTS),
    **load("relet.store.sqlite", "figures.sql", FIGURES_STATEMENTS),
    **load("relet.store.sqlite", "waiting.sql", WAITING_STATEMENTS),
    **load("relet.store.sqlite", "prune.sql", PRUNE_STATEMENTS),
    **load("relet.store.sqlite", "turns.sql", TURN_STATEMENTS),
    **load("relet.store.sqlite", "bonds.sql", BOND_STATEMENTS),
    **load("relet.store.sqlite", "keys.sql", KEY_STATEMENTS),
}
# Not what a colon parts within a quoted text, such as the mark of a kept file.
_PARAMETER = re.compile(r"(?<!\w):(\w+)")


def _names(name: str, text: str) -> list[str]:
    """The parameters of a statement in their order. Raises LookupError when it has others than are listed for it."""
    names = list(dict.fromkeys(_PARAMETER.findall(text)))
    listed = LISTED.get(name, names)
    if set(listed) != set(names):
        raise LookupError(f"{name}: has the parameters {names}, {list(listed)} are listed")
    return list(listed)


def _in_order(names: list[str]) -> Callable[[Params], tuple[Any, ...]]:
    """Values in the order of the parameters; several times cheaper than binding each by its name."""
    if len(names) < 2:  # noqa: PLR2004 - itemgetter answers a bare value for one name
        return lambda params: tuple(params[name] for name in names)
    return itemgetter(*names)


def _numbered(text: str, names: list[str]) -> str:
    """Parameters by number: a shorter text is found sooner among the prepared ones."""
    return _PARAMETER.sub(lambda found: f"?{names.index(found[1]) + 1}", text)


def _of_row(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """As `_in_order`, straight from a row's attributes."""
    if tuple(names) == LeaseRow.__struct_fields__:
        return msgspec.structs.astuple
    return attrgetter(*names) if len(names) > 1 else lambda row: tuple(getattr(row, name) for name in names)


class _Prepared(dict[str, tuple[str, Callable[[Any], tuple[Any, ...]]]]):
    """Statements by name with their parameters by number, each made when it is first used: a command uses few."""

    def __init__(self, valued: Callable[[list[str]], Callable[[Any], tuple[Any, ...]]]) -> None:
        super().__init__()
        self._valued = valued

    def __missing__(self, name: str) -> tuple[str, Callable[[Any], tuple[Any, ...]]]:
        text = SQL[name]
        names = _names(name, text)
        made = self[name] = (_numbered(text, names), self._valued(names))
        return made


PREPARED: Final = _Prepared(_in_order)
PREPARED_FOR_ROWS: Final = _Prepared(_of_row)
READ_META: Final = SQL["read_meta"]
BEGIN_TO_WRITE: Final = f"BEGIN IMMEDIATE; {READ_META}"
"""Answers what `SqliteRunner` is to be told of the store, read under the write lock."""
BEGIN_TO_READ: Final = "BEGIN"


HELD_BACK: Final = frozenset(["add_event", "insert_lease", "take_task", "end_lease", "complete_task"])
"""Writes of a grant and of an ending that may change places with each other: none of them touches a row, or a key,
that another one of them needs as it was."""


class LapseSeen(Exception):
    """A transaction without fsync is about to write a lapse: run it again where it is durable."""


class SqliteRunner:
    """Statements of one transaction. The clock is read once, after the transaction is held.

    `meta` is the answer to `READ_META`, for a transaction that writes.
    """

    def __init__(self, cursor: apsw.Cursor, identity: Identity, *, durable: bool, meta: Row | None) -> None:
        self._execute, self._executemany = cursor.execute, cursor.executemany
        self._identity = identity
        self._durable = durable
        self._at: Instants | None = None
        self.burnt = False
        self.secret = identity.secret
        self.is_ours, self.own_locks = identity.bonds.is_ours, identity.bonds.own_locks
        self.issued: tuple[int, int] | None = None
        self.mark = (0, 0)
        """As `Mark`s, which are dear to make."""
        self.held_back: dict[str, list[tuple[Any, ...]]] = {}
        """Writes by their text, sent together before anything else is."""
        if meta is not None:
            if meta[0] > SCHEMA:
                from relet.store.sqlite.gone import check_here

                check_here(cursor.execute, meta[0])
                check_writer(meta[0])
            self._meta, self._event = meta, meta[5] or 0

    async def all(self, name: str, params: Params) -> list[Row]:
        text, in_order = PREPARED[name]
        if self.held_back:
            self.send()
        return self._execute(text, in_order(params)).fetchall()

    async def one(self, name: str, params: Params) -> Row | None:
        # All of it: a statement must run to its end for RETURNING to have written.
        text, in_order = PREPARED[name]
        if self.held_back:
            self.send()
        rows = self._execute(text, in_order(params)).fetchall()
        return rows[0] if rows else None

    async def do(self, name: str, params: Params) -> None:
        text, in_order = PREPARED[name]
        if self.held_back:
            self.send()
        self._execute(text, in_order(params))

    async def do_row(self, name: str, row: msgspec.Struct) -> None:
        text, of_row = PREPARED_FOR_ROWS[name]
        if name in HELD_BACK and getattr(row, "exclusive", None) is None:
            self._hold_back(text, of_row(row))
            return
        # A lease with a key waits for the end of the one before it, and so does whatever is written whole.
        if self.held_back:
            self.send()
        self._execute(text, of_row(row))

    async def one_listed(self, name: str, values: tuple[Any, ...]) -> Row | None:
        if self.held_back:
            self.send()
        rows = self._execute(PREPARED[name][0], values).fetchall()
        return rows[0] if rows else None

    async def do_listed(self, name: str, values: tuple[Any, ...]) -> None:
        text = PREPARED[name][0]
        if name in HELD_BACK:
            self._hold_back(text, values)
            return
        if self.held_back:
            self.send()
        self._execute(text, values)

    def do_all(self, name: str, rows: list[tuple[Any, ...]]) -> None:
        assert name in HELD_BACK, "written in its turn otherwise"
        self.held_back.setdefault(PREPARED[name][0], []).extend(rows)

    async def do_many(self, name: str, params: Sequence[Params]) -> None:
        text, in_order = PREPARED[name]
        if self.held_back:
            self.send()
        self._executemany(text, map(in_order, params))

    def _hold_back(self, text: str, values: tuple[Any, ...]) -> None:
        rows = self.held_back.get(text)
        if rows is None:
            self.held_back[text] = [values]
        else:
            rows.append(values)

    def send(self) -> None:
        """Hand the writes that were held back to the engine; many of a kind cost it less together."""
        for text, rows in self.held_back.items():
            if len(rows) == 1:
                self._execute(text, rows[0])
            else:
                self._executemany(text, rows)
        self.held_back = {}

    async def instants(self) -> Instants:
        if self._at is None:
            # After the lock: a waiter would otherwise judge by a time before it waited.
            self._at = self._identity.read_clock()
        return self._at

    async def next_token(self) -> int:
        epoch, n = self.issued or self._last_issued()
        if not self.burnt and self._identity.must_settle_tokens():
            (epoch, n), self.mark = self._identity.settle_tokens(Mark(epoch, n), Mark(*self.mark))
            self.burnt = True
        n += 1
        if n >= 1 << limits.TOKEN_BITS:
            epoch, n = epoch + 1, 1
        self.issued = epoch, n
        if self.issued > self.mark:
            self.mark = self._identity.cover(Mark(epoch, n + limits.TOKEN_BLOCK - 1))
            await self.do("set_tokens", {"epoch": epoch, "n": n, "mark": self.mark[1]})
        return epoch << limits.TOKEN_BITS | n

    def _last_issued(self) -> tuple[int, int]:
        """The larger of what the store's own row says and of what is in the register."""
        _, epoch, n, mark, last, _ = self._meta
        self.mark = epoch, mark
        return max((epoch, n), divmod(last or 0, 1 << limits.TOKEN_BITS))

    def next_event(self) -> int:
        self._event += 1
        return self._event

    def fingerprint(self, text: str) -> str:
        return self._identity.fingerprint(text)

    def saw_lapse(self) -> None:
        if not self._durable:
            raise LapseSeen
