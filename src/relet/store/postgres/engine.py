"""The PostgreSQL engine: requests in, each one short transaction, answers out after COMMIT."""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
import psycopg

from relet.core.drive import drive
from relet.core.errors import DAMAGED, Error, Refused, Unavailable
from relet.core.operation import Operation, operation_of
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete, Completed
from relet.core.rules.inspect import Changes
from relet.core.rules.renew import Renew
from relet.core.rules.submit import Submit
from relet.noticing import Watch
from relet.store.postgres import feed
from relet.store.postgres.at_once import AT_ONCE
from relet.store.postgres.clock import ServerClock, SteeredClock, Steering, StoreClock
from relet.store.postgres.connect import LOCK_MS_MAX, TRANSACTION_S, Identity, identity_of, open_store
from relet.store.postgres.faults import Retry, translated, unknown_outcome
from relet.store.postgres.hot import NOT_PLAIN, Looks, Question, asked, asked_both, question_of
from relet.store.postgres.line import Line
from relet.store.postgres.outage import OtherEpoch, settle
from relet.store.postgres.place import conninfo_of, located, place_of, url_of
from relet.store.postgres.pool import ANSWER_S, Connections
from relet.store.postgres.runner import LapseSeen, NotAtOnce, Outage, PostgresRunner
from relet.store.postgres.transact import TO_READ, TO_READ_ON, TO_WRITE, Undone, alone, transact
from relet.store.postgres.tries import PATIENCE_MS, Tries
from relet.store.postgres.tx import PostgresTx
from relet.store.postgres.watch import Herald
from relet.store.runner import Params, Refusal
from relet.store.secrets import Secrets

READ_S: Final = 20.0
"""How long a look may take, of however many rows; what writes is short."""
BYTES_A_SECOND: Final = 1_000_000
"""How fast the server takes in what is sent to it, at the least."""
LOCKED_S: Final = 0.2
"""For so long a renewal waits for a row that somebody has locked."""
Answered = tuple[Any, list[Refusal], bool]
"""An answer, the writes that were refused, and is there anything to tell those who wait."""


class PostgresStore:
    """A store in one schema of a database. Safe for all threads; a forked child opens connections of its own."""

    def __init__(self, url: str, schema: str | None, *, clock: Steering | None = None) -> None:
        url, schema = located(url, schema)
        self.schema, self.url = schema, url_of(url, schema)
        self.conninfo = conninfo_of(url)
        self.place = place_of(url, schema)
        self.clock: StoreClock = ServerClock() if clock is None else SteeredClock(clock)
        opened = open_store(self.conninfo, self.place, schema, self.clock)
        self.dialect, self.can, self.version = opened.dialect, opened.can, opened.version
        self.looks = Looks(self.clock)
        self.is_hot = not self.clock.steered
        """Are single statements asked first. On a steered clock they would be told the time before they wait."""
        self.identity, self.secrets = opened.identity, Secrets(opened.identity.secret_key)
        self.calls = Connections(self.conninfo, self.place, self.can)
        self.beats = Connections(
            self.conninfo, self.place, self.can, durable=False, most=1, instead=self.calls
        )  # fmt: skip
        self.herald = Herald(self.conninfo, self.place, _channel(opened.identity), listens=self.can.listen)
        _OPEN.add(self)

    @property
    def store_id(self) -> str:
        """Of the store that is in the place now."""
        return self.identity.store_id

    def call(self, ask: Any, tenant: str, patience_ms: int | None = None) -> Any:
        """The answer to a request of a tenant. A refusal is raised, after what it observed was committed."""
        return self.answer(operation_of(type(ask)), ask, tenant, patience_ms)

    def answer(self, operation: Operation, ask: Any, tenant: str, patience_ms: int | None = None) -> Any:
        """As `call`, for operations of the engine's own too."""
        usual_ms = PATIENCE_MS if operation.writes else READ_S * 1_000
        until = time.monotonic() + (usual_ms if patience_ms is None else max(1, patience_ms)) / 1_000
        answer, refusals, has_news = self._by_weight(until, operation, ask, tenant)
        if type(ask) is Renew and any(isinstance(one, Unavailable) for one in answer):
            refusals = refusals + self._renew_locked(until, operation, ask, answer, tenant)
        if has_news:
            self.herald.tell()
        if isinstance(answer, Completed) and answer.grants is NOT_PLAIN:
            # What was handed in stands; were this to fail, it is repeated as a whole, and told the same of that.
            answer = msgspec.structs.replace(answer, grants=self._following(ask.next, tenant, until))
        if refusals:
            feed.write_refusals(self, operation.name, refusals)
        if isinstance(answer, Error):
            raise answer
        return answer

    def _by_weight(self, until: float, operation: Operation, ask: Any, tenant: str) -> Answered:
        """Without a flush where that loses nothing; what turns out to be more on the way is run again with one."""
        if operation.writes and not operation.durable:
            with contextlib.suppress(LapseSeen):
                return self._until(until, operation, ask, tenant, durable=False)
        return self._until(until, operation, ask, tenant, durable=True)

    def _renew_locked(
        self, until: float, operation: Operation, ask: Renew, answers: list[Any], tenant: str
    ) -> list[Refusal]:
        """Renew what somebody had locked, into `answers`: whoever it is lets go of it in a moment, as a rule."""
        until, refusals = min(until, time.monotonic() + LOCKED_S), []
        while busy := [n for n, one in enumerate(answers) if isinstance(one, Unavailable)]:
            time.sleep(LOCKED_S / 10)
            rest = msgspec.structs.replace(ask, handles=[ask.handles[n] for n in busy])
            if time.monotonic() >= until:
                break
            try:
                found, more, _ = self._by_weight(until, operation, rest, tenant)
            except Unavailable:
                break  # the others are renewed all the same
            refusals += more
            for n, one in zip(busy, found, strict=True):
                answers[n] = one
        return refusals

    def _following(self, ask: Any, tenant: str, until: float) -> Any:
        """The grants of a claim, or its refusal, after results that were taken."""
        try:
            return self.call(ask, tenant, max(1, int((until - time.monotonic()) * 1_000)))
        except Unavailable as away:
            raise unknown_outcome(
                f"results were taken, and the claim that comes with them was not ({away.code})"
            ) from away
        except Refused as refusal:
            return refusal

    def _until(self, until: float, operation: Operation, ask: Any, tenant: str, *, durable: bool) -> Answered:
        """Again and again, for as long as its caller waits, where another try may be luckier."""
        tries = Tries(until, self.place)
        while True:
            try:
                return self._once(tries.left_s, operation, ask, tenant, durable=durable)
            except NotAtOnce:
                operation = operation._replace(at_once=False)
                tries.overtaken()
            except Outage as outage:
                mend = self.learn if isinstance(outage, OtherEpoch) else self.settle
                tries.out(mended=self._is_mended(mend, tries))
            except Undone as undone:
                tries.undone(undone)
                if undone.retry is Retry.RECONNECT:
                    self._pool_of(durable=durable).forget_broken()
                tries.pause()
            except Unavailable as wrong:
                if tries.is_over(wrong):
                    raise
                tries.pause()

    def _is_mended(self, mend: Callable[[float], None], tries: Tries) -> bool:
        """Do it; False where the server is gone again, and there is time left for another try."""
        try:
            mend(tries.left_s)
        except Unavailable as wrong:
            if wrong.code == DAMAGED or tries.is_over(wrong):
                raise
            return False
        return True

    def _once(self, left_s: float, operation: Operation, ask: Any, tenant: str, *, durable: bool) -> Answered:
        lock_ms = int(min(LOCK_MS_MAX, max(1.0, left_s * 1_000)))
        pool, answer_s = self._pool_of(durable=durable), ANSWER_S if operation.writes else READ_S
        more_s = sent(ask) / BYTES_A_SECOND
        with pool.borrowed(left_s, answer_s, lock_ms, more_s) as connection:
            terms: Params | None = None
            if not self.can.own_session:
                terms = {"commit": "on" if durable else "off", "lock_timeout": str(lock_ms)}
            elif operation.at_once and more_s < 1 and (question := question_of(self, ask, tenant)) is not None:
                answer = self._asked(connection, question, tenant)
                if answer is not NOT_PLAIN:
                    return answer, [], True
            if isinstance(ask, Claim):
                self.looks.note(tenant, ask.queues)
            work = partial(self.work, connection.cursor, operation, ask, tenant, durable=durable, terms=terms)
            begin = TO_WRITE if operation.writes else TO_READ_ON if type(ask) is Changes else TO_READ
            return transact(connection, begin, work, _bound(connection, operation, more_s))

    def _asked(self, line: Line, question: Question, tenant: str) -> Any:
        """As by the rule, or `NOT_PLAIN`."""
        if question.then is None:
            return alone(line, partial(asked, self, line.hand, question, tenant))
        return transact(line, TO_WRITE, partial(asked_both, self, line, question, tenant))

    def work(
        self, cursor: Callable[[], psycopg.Cursor[Any]], operation: Operation, ask: Any, tenant: str, *,
        durable: bool, terms: Params | None,
    ) -> Answered:  # fmt: skip
        """Run the rule of a request within an open transaction."""
        runner = PostgresRunner(
            cursor,
            self.dialect._replace(reads=not operation.writes),
            self.secrets,
            self.clock,
            durable=durable,
            terms=terms,
        )
        tx = PostgresTx(runner, tenant)
        rule = AT_ONCE.get(type(ask), operation.rule) if operation.at_once else operation.rule
        answer = drive(rule(tx, ask))
        if tx.loose:
            drive(tx.settle())
        runner.end()
        if runner.epoch > self.identity.epoch:
            raise OtherEpoch
        return answer, tx.refusals, runner.has_news

    def settle(self, left_s: float) -> None:
        """Settle an outage, unless somebody else has done it by now."""
        try:
            with self.calls.borrowed(left_s) as connection:
                settle(connection, self.dialect, self.clock)
        except psycopg.Error as wrong:
            raise translated(wrong, self.place) from wrong
        self.learn(left_s)

    def learn(self, left_s: float) -> None:
        """Look anew which store this is: where one was empty, a copy of another may have been brought."""
        try:
            with self.calls.borrowed(left_s) as connection:
                found = identity_of(connection, self.place, self.dialect)
        except psycopg.Error as wrong:
            raise translated(wrong, self.place) from wrong
        if found.secret_key != self.identity.secret_key:
            self.secrets = Secrets(found.secret_key)
            self.herald.turn_to(_channel(found))
        self.identity = found

    def watch(self) -> Watch:
        """A waiter of its own for a thread."""
        return Watch(self.herald)

    def close(self) -> None:
        """Close the connections; later calls raise `Unavailable`."""
        self.herald.close()
        self.calls.close()
        self.beats.close()
        _OPEN.discard(self)

    def after_fork_in_child(self) -> None:
        """Connections and threads of its own."""
        self.calls.abandon()
        self.beats.abandon()
        self.herald.abandon()
        self.clock.abandon()

    def _pool_of(self, *, durable: bool) -> Connections:
        return self.calls if durable else self.beats


def sent(ask: Any) -> int:
    """How many bytes go along with a request; 0 for those that are few by their limits."""
    if type(ask) is Submit:
        return sum(len(new.input) for new in ask.tasks)
    if type(ask) is Complete:
        return sum(len(item.result) for item in ask.completions)
    return 0


def _bound(connection: Line, operation: Operation, more_s: float) -> float | None:
    """How long its transaction may take; None for as long as the session says."""
    if not operation.writes:
        return READ_S + ANSWER_S if connection.bounds_all else None
    return TRANSACTION_S + more_s if more_s >= 1 else None


def _channel(identity: Identity) -> str:
    return f"relet_{identity.store_id[:16]}"


_OPEN: weakref.WeakSet[PostgresStore] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for store in list(_OPEN):
        store.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
