"""One open transaction on a connection: statements by name, the clock, the tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import psycopg

from relet.core import limits
from relet.core.errors import UpgradeRequired
from relet.core.model import Instants
from relet.core.tx import LeaseRow
from relet.store.postgres.clock import STEP_MS, StoreClock
from relet.store.postgres.schema import check_writer
from relet.store.postgres.span import Span
from relet.store.postgres.texts import Dialect, Statement, many_of, picked, statement
from relet.store.rows import Row
from relet.store.runner import Params
from relet.store.secrets import Secrets
from relet.store.sql import LISTED

TELLING: Final = frozenset(["add_event", "put_queue", "insert_tasks"])
"""What others may wait for: every change of a task has its event. A claim that finds nothing has none to tell."""
LONG_MS: Final = 500
"""Who takes longer looks at the store's row once more: somebody may have settled an outage beside it."""
SUMMED: Final = frozenset(["count_submitted", "count_takeover", "count_pruned"])
"""Written last, in the order of their keys: who waits there holds up nobody else's tasks."""
EXPIRES_MS: Final = LeaseRow.__struct_fields__.index("expires_ms")
ENDED: Final = LeaseRow.__struct_fields__.index("ended")


class Outage(Exception):
    """The server was started anew, or its clock was stepped: to be settled before anything is judged."""


class NotAtOnce(Exception):
    """What was seen has changed, or is not as plain as it seemed: undo what was written, and ask the rule.

    The rule's own looks may raise it as well. Nobody spins: each time it was another commit that came between a look
    and a lock, which the next try sees.
    """


class LapseSeen(Exception):
    """A transaction without a flush is about to write a lapse: run it again where it is durable."""


class PostgresRunner:
    """Statements of one transaction, sent without waiting for the answers that nobody asks for yet.

    The clock is that of the last statement that had to wait for a lock; the first reading comes with the store's
    single row, which is looked at before anything else is. `terms` are how to commit, and how long to wait for a
    lock, where the session itself has no such settings.
    """

    def __init__(
        self, cursor: Callable[[], psycopg.Cursor[Any]], dialect: Dialect, secrets: Secrets, clock: StoreClock, *,
        durable: bool, terms: Params | None,
    ) -> None:  # fmt: skip
        self._cursor, self._dialect = cursor, dialect
        self._secrets, self._clock = secrets, clock
        self.writes, self._durable = not dialect.reads, durable
        self.steered = clock.steered
        self.has_news = False
        """Was anything written that others may wait for."""
        self.secret, self.fingerprint = secrets.secret, secrets.fingerprint
        self._at: Instants | None = None
        self._ahead_ms = self._epoch = self._steps = self._began_ms = 0
        self.span = Span()
        self._tokens: list[int] = []
        self._draws_anew = False
        self._submitted: dict[tuple[str, str], int] = {}
        self._taken_over: list[int] = []
        self._pruned: dict[tuple[str, str], Counter[str]] = {}
        self._pruned_from: list[tuple[tuple[str, str], Callable[[], list[Row]]]] = []
        """Whose leases were taken over how often; asked before they are gone."""
        self._sent_at = clock.elapsed_ms()
        self._meta: psycopg.Cursor[Any] | None = self._begin(terms)

    # -- what a transaction is asked for -------------------------------------------------------------------------

    async def all(self, name: str, params: Params) -> list[Row]:
        known = self._known(name)
        text = known.with_limit(params["limit"]) if known.has_limit else known.text
        return self._answered(known, self._execute(text, known.values(params)))

    def later(self, name: str, params: Params) -> Callable[[], list[Row]]:
        """Send a statement behind those that were sent before it; what is answered fetches its rows."""
        known = self._known(name)
        cursor = self._execute(known.text, known.values(params))
        return lambda: self._answered(known, cursor)

    async def one(self, name: str, params: Params) -> Row | None:
        rows = await self.all(name, params)
        return rows[0] if rows else None

    async def do(self, name: str, params: Params) -> None:
        if name in SUMMED:
            self._sum_up(name, params)
            return
        known = self._known(name)
        self._execute(known.text, known.values(params))

    async def do_row(self, name: str, row: msgspec.Struct) -> None:
        known = self._known(name)
        self._execute(known.text, [getattr(row, each) for each in known.names])

    async def one_listed(self, name: str, values: tuple[Any, ...]) -> Row | None:
        known = statement(name, self._dialect)
        rows = self._answered(known, self._execute(known.text, picked(name, self._dialect)(values)))
        return rows[0] if rows else None

    async def do_listed(self, name: str, values: tuple[Any, ...]) -> None:
        self._execute(self._known(name).text, picked(name, self._dialect)(values))

    def do_all(self, name: str, rows: list[tuple[Any, ...]]) -> None:
        self.has_news = self.has_news or name in TELLING
        order = LISTED.get(name, LeaseRow.__struct_fields__)
        self._execute(*many_of(name, rows, tuple(order), self._dialect))

    async def do_many(self, name: str, params: Sequence[Params]) -> None:
        known = statement(name, self._dialect)
        for each in params:
            self._execute(known.text, known.values(each))

    @property
    def held_back(self) -> bool:
        """Are sums left to be written."""
        return bool(self._submitted or self._taken_over or self._pruned)

    def send(self) -> None:
        """Write the sums."""
        if self._submitted or self._taken_over:
            known = statement("add_totals", self._dialect)
            submitted = [[*key, n] for key, n in self._submitted.items()]
            self._execute(known.text, known.values({
                "submitted": msgspec.json.encode(submitted).decode(),
                "taken_over": msgspec.json.encode(self._taken_over).decode(),
            }))  # fmt: skip
            self._submitted, self._taken_over = {}, []
        if self._pruned:
            for key, taken_over in self._pruned_from:
                self._pruned[key]["took_over"] += taken_over()[0][0]
            known = statement("add_pruned", self._dialect)
            pruned = [
                [*key, n.total() - n["took_over"], n["failed"] + n["cancelled"], n["failed"], n["took_over"]]
                for key, n in self._pruned.items()
            ]
            self._execute(known.text, known.values({"pruned": msgspec.json.encode(pruned).decode()}))
            self._pruned, self._pruned_from = {}, []

    # -- time, tokens --------------------------------------------------------------------------------------------

    async def instants(self) -> Instants:
        if self._meta is not None:
            self._look_at_meta()
        if self._at is None:
            await self.one("read_clock", {})
        assert self._at is not None, "read with the store's row"
        self.span.begin()
        return self._at

    async def next_token(self) -> int:
        if self._draws_anew:
            # The others as well: who is granted several gets them in their order.
            self._tokens, self._draws_anew = [], False
        if not self._tokens:
            row = await self.one("next_token", {})
            assert row is not None, "a sequence answers one row"
            self._tokens.append(row[0])
        # Added, not joined: a number that outgrows its half goes on into the epoch.
        return (self._epoch << limits.TOKEN_BITS) + self._tokens.pop()

    @property
    def epoch(self) -> int:
        """The one in which this transaction stands."""
        return self._epoch

    def draw_anew(self) -> None:
        """The next token is for what was locked after the reserved ones were drawn: those are for others."""
        self._draws_anew = True

    def forget_tokens(self) -> None:
        """What was reserved is for nothing that will be granted."""
        self._tokens = []

    def next_event(self) -> int:
        return 0

    def is_ours(self, lock: str) -> bool:  # noqa: ARG002 - nothing is bound to a lock of one machine here
        return True

    def own_locks(self) -> list[str]:
        return []

    def saw_lapse(self) -> None:
        if not self._durable:
            raise LapseSeen

    # -- the wire ------------------------------------------------------------------------------------------------

    def _known(self, name: str) -> Statement:
        self.has_news = self.has_news or name in TELLING
        return statement(name, self._dialect)

    def _begin(self, terms: Params | None) -> psycopg.Cursor[Any]:
        if terms is not None:
            known = statement("set_terms", self._dialect)
            self._execute(known.text, known.values(terms))
        return self._execute(statement("begin_meta" if self.writes else "begin_to_read", self._dialect).text, ())

    def _execute(self, text: str, values: Sequence[Any]) -> psycopg.Cursor[Any]:
        # A cursor of its own for each: answers are fetched later than other statements are sent.
        return self._cursor().execute(text, values)

    def end(self) -> None:
        """What must be known before the commit is sent."""
        if self.writes and self._meta is None and self._clock.elapsed_ms() - self._sent_at > LONG_MS:
            self._sent_at = self._clock.elapsed_ms()
            self._meta = self._execute(statement("begin_meta", self._dialect).text, ())
        if self._meta is not None:
            self._look_at_meta()
        if self.span.may_reach(self._latest_ms()):
            # Also what locks no rows may have waited, as for one who adds the same key.
            row = self._execute(statement("read_clock", self._dialect).text, ()).fetchone()
            assert row is not None, "a clock answers"
            self._read(row[0])

    def _answered(self, known: Statement, cursor: psycopg.Cursor[Any]) -> list[Row]:
        if self._meta is not None:
            self._look_at_meta()
        rows: list[Row] = cursor.fetchall()
        if not known.clocked or not rows:
            return rows
        self._read(rows[-1][-1])
        if known.judged:
            for row in rows:
                if row[ENDED] is None:
                    self.span.look_at(row[EXPIRES_MS])
            self._check_span()
        if not known.reserving:
            return [row[:-1] for row in rows]
        # Those of an earlier look would be older than what these tasks may have been granted since.
        self._tokens = [row[-2] for row in reversed(rows) if row[-2] is not None]
        return [row[:-2] for row in rows]

    def _look_at_meta(self) -> None:
        cursor, self._meta = self._meta, None
        assert cursor is not None, "looked at once"
        row = cursor.fetchone()
        if row is None:
            raise UpgradeRequired("the store's own row is gone; nothing was written → relet doctor")
        looked, steps = self._at is not None, self._steps
        least, self._epoch, self._ahead_ms, self._steps, is_same_run, clock_ms = row[:6]
        if self.writes:
            check_writer(least)
            if not is_same_run or (looked and self._steps != steps):
                raise Outage
        if not self._clock.notice(clock_ms + self._ahead_ms, self._steps, self._sent_at) and self.writes:
            raise Outage
        self._began_ms = clock_ms
        self._read(clock_ms)

    def _latest_ms(self) -> float:
        """Store time is no later than this now."""
        return self._clock.instants(self._began_ms, self._ahead_ms).now_ms + self._clock.elapsed_ms() - self._sent_at

    def _read(self, clock_ms: int) -> None:
        if self.writes and clock_ms - self._began_ms > self._clock.elapsed_ms() - self._sent_at + STEP_MS:
            raise Outage  # stepped forward since this transaction began: nobody is judged by it
        at = self._clock.instants(clock_ms, self._ahead_ms)
        # Within a transaction time does not go back, whatever the server's clock does.
        self._at = at if self._at is None else Instants(max(at.now_ms, self._at.now_ms), at.wall_ms)
        self.span.reach(self._at)
        self._check_span()

    def _check_span(self) -> None:
        if self.span.is_torn:
            raise NotAtOnce

    def _sum_up(self, name: str, params: Params) -> None:
        if name == "count_takeover":
            self._taken_over.append(params["task_seq"])
            return
        key = params["tenant"], params["queue"]
        if name == "count_pruned":
            self._pruned.setdefault(key, Counter())[params["state"]] += 1
            self._pruned_from.append((key, self.later("count_taken_over", params)))
            return
        self._submitted[key] = self._submitted.get(key, 0) + params.get("n", 1)
