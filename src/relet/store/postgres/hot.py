"""Claims and completions in one statement each, and so in one round trip, where all about them is plain.

They write what the rule would write; tests run both on the same registers. Whatever is not plain changes nothing
here, and is left to the rule.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import psycopg

from relet.core import limits
from relet.core.model import Grant, Handle
from relet.core.payload import decode, digest
from relet.core.rules.claim import Claim
from relet.core.rules.complete import DONE, Complete, Completed
from relet.core.rules.finish import kept
from relet.core.rules.grant import KNOBS, are_readable
from relet.store.postgres.clock import STEP_MS, StoreClock
from relet.store.postgres.line import Line
from relet.store.postgres.schema import SCHEMA
from relet.store.postgres.texts import array_of, statement
from relet.store.proof import all_proven
from relet.store.rows import Row
from relet.store.runner import Params

if TYPE_CHECKING:
    from relet.store.postgres.engine import PostgresStore

_HEAD: Final = 3
"""Columns that the last row begins with: what is added to the server's clock, how often it was changed, the clock."""
_TOKEN: Final = _HEAD + 1
"""Of a lease, after the number of its task; a row without one is a task."""
_OF_TASK: Final = slice(8, 13)
"""What a task's row tells, counted from its number on."""
_LABELS: Final = 3
LOOK_EVERY_MS: Final = 20
"""What falls due or lapses is looked for so often at least."""
LOOKS_KEPT: Final = 1_000
"""With more queues than that, looks that are no longer fresh are forgotten."""
_ENCODER: Final = msgspec.json.Encoder()
_TOLD: Final = kept(DONE)
NOT_PLAIN: Final = object()
"""The answer to what only the rule can answer; nothing was changed."""


class Question(NamedTuple):
    """A statement, its values, and how its rows are read; in which queue nothing may have fallen due or lapsed."""

    name: str
    params: Params
    read: Callable[[list[Row]], Any]
    looks_at: str | None = None
    then: Question | None = None
    """What is asked in the same transaction, where this one found all plain."""


class Looks:
    """When somebody last looked for what has fallen due or lapsed in a queue, by this process's clock."""

    def __init__(self, clock: StoreClock) -> None:
        self._clock = clock
        self._at: dict[tuple[str, str], float] = {}

    def note(self, tenant: str, queues: list[str]) -> None:
        """A look begins now: a claim by the rule, or the question alone."""
        now_ms = self._clock.elapsed_ms()
        for queue in queues:
            self._at[tenant, queue] = now_ms
        if len(self._at) > LOOKS_KEPT:
            # From a copy: other threads note theirs meanwhile. One that is lost to them costs a look.
            for key, at_ms in list(self._at.items()):
                if now_ms - at_ms >= LOOK_EVERY_MS:
                    self._at.pop(key, None)

    def is_fresh(self, tenant: str, queue: str) -> bool:
        """Was it a moment ago: nothing can have lapsed or fallen due since that cannot wait for the next look."""
        return self._clock.elapsed_ms() - self._at.get((tenant, queue), -LOOK_EVERY_MS) < LOOK_EVERY_MS


def question_of(store: PostgresStore, ask: Any, tenant: str) -> Question | None:
    """The one statement that may answer a request; None where there is none."""
    if not store.is_hot or store.clock.reading() is None:
        return None
    if type(ask) is Claim:
        return _claim(store, ask, tenant)
    if type(ask) is Complete and ask.completions:
        return _completions(store, ask, tenant)
    return None


def asked(store: PostgresStore, cursor: psycopg.Cursor[Any], question: Question, tenant: str) -> Any:
    """The answer, or `NOT_PLAIN`."""
    if question.looks_at is not None and _is_anything_due(store, cursor, tenant, question.looks_at):
        return NOT_PLAIN
    at = store.clock.reading()
    if at is None:
        return NOT_PLAIN
    known = statement(question.name, store.dialect)
    params = {
        **question.params, "steps": at.steps, "least_ms": int(at.least_ms) - STEP_MS,
        "most_ms": int(at.most_ms) + STEP_MS,
    }  # fmt: skip
    text = known.with_limit(question.params["limit"]) if known.has_limit else known.text
    rows = cursor.execute(text, known.values(params)).fetchall()
    if not rows:
        return NOT_PLAIN  # also where there is nothing to take: the rule has more to look at
    ahead_ms, steps, clock_ms = rows[-1][:_HEAD]
    answer = question.read(rows)
    # Of use to the next question alone: where the server's clock is not where this one says, there is no row.
    store.clock.notice(clock_ms + ahead_ms, steps, at.elapsed_ms)
    return answer


def asked_both(store: PostgresStore, line: Line, question: Question, tenant: str) -> Any:
    """Results handed in, and the claim that follows, whose answer stands among the grants; or `NOT_PLAIN`.

    Where only the claim is not plain, what was handed in stands.
    """
    assert question.then is not None, "asked for nothing else"
    completed = asked(store, line.hand, question, tenant)
    if completed is NOT_PLAIN:
        return NOT_PLAIN
    return msgspec.structs.replace(completed, grants=asked(store, line.hand, question.then, tenant))


def _is_anything_due(store: PostgresStore, cursor: psycopg.Cursor[Any], tenant: str, queue: str) -> bool:
    if store.looks.is_fresh(tenant, queue):
        return False
    store.looks.note(tenant, [queue])
    known = statement("is_anything_due", store.dialect)
    row = cursor.execute(known.text, known.values({"tenant": tenant, "queue": queue, **_store(store)})).fetchone()
    return row is None or bool(row[0])


def _claim(store: PostgresStore, ask: Claim, tenant: str) -> Question | None:
    if ask.task_id is not None or ask.request_id is not None or ask.again or len(ask.queues) != 1:
        return None
    (queue,) = ask.queues

    def read(rows: list[Row]) -> Any:
        leases = {row[_HEAD]: row for row in rows if row[_TOKEN] is not None}
        if not leases:
            return NOT_PLAIN
        tasks = (row[_HEAD:] for row in rows if row[_TOKEN] is None)
        return [
            _grant(store, ask, leases[task[0]][_TOKEN:], task)
            for task in tasks
            # The lease of a damaged one is written, and lapses: the others must not go with it.
            if task[0] in leases and are_readable(task[_OF_TASK][_LABELS])
        ]

    return Question("claim_plain", {
        **_store(store), "tenant": tenant, "queue": queue, "holder": ask.holder, "call_id": ask.call_id,
        "ttl_ms": ask.ttl_ms or None, "kinds": None if ask.kinds is None else _ENCODER.encode(ask.kinds).decode(),
        "handlers": _handlers(ask), "limit": ask.n, **_DEFAULTS,
    }, read, looks_at=queue)  # fmt: skip


def _grant(store: PostgresStore, ask: Claim, lease: Row, task: Row) -> Grant:
    token, attempt, ttl_ms, timeout_ms, claimed_ms, claimed_wall_ms, expires_ms, *_, payload = lease
    deadline_wall_ms, task_id, kind, labels, progress = task[_OF_TASK]
    return Grant(
        handle=Handle(task_id, token, store.secrets.secret(token, task_id)), queue=ask.queues[0], kind=kind,
        holder=ask.holder, attempt=attempt, input=msgspec.Raw(payload.encode()),
        labels=decode(labels) if labels else {}, ttl_ms=ttl_ms, left_ms=expires_ms - claimed_ms, held_ms=0,
        timeout_ms=timeout_ms,
        deadline_left_ms=None if deadline_wall_ms is None else deadline_wall_ms - claimed_wall_ms,
        progress=progress, took_over=None,
    )  # fmt: skip


def _completions(store: PostgresStore, ask: Complete, tenant: str) -> Question | None:
    items = ask.completions
    tokens = [item.handle.token for item in items]
    if not all_proven(store.secrets.secret, [item.handle for item in items]) or len(set(tokens)) < len(tokens):
        return None
    following = None
    if ask.next is not None and (following := _claim(store, ask.next, tenant)) is None:
        return None
    results = [str(item.result, "utf-8") for item in items]
    same = {**_store(store), "tenant": tenant, "answer": _TOLD}

    def read(_rows: list[Row]) -> Completed:
        return Completed(outcomes=[DONE] * len(items))

    if len(items) == 1:
        ((result,), (token,)) = results, tokens
        return Question("complete_one", {
            **same, "token": token, "task_id": items[0].handle.task_id, "digest": digest(result), "result": result,
        }, read, then=following)  # fmt: skip
    digests = {result: digest(result) for result in set(results)}  # most are alike: None, as a rule
    return Question("complete_plain", {
        **same, "tokens": array_of(tokens), "results": array_of(results),
        "digests": array_of([digests[result] for result in results]),
    }, read, then=following)  # fmt: skip


_DEFAULTS: Final = {
    "default_ttl_ms": limits.TTL_MS, "default_max_attempts": limits.MAX_ATTEMPTS,
    "default_max_losses": limits.MAX_LOSSES, "default_backoff_base_ms": limits.BACKOFF_BASE_MS,
    "default_backoff_cap_ms": limits.BACKOFF_CAP_MS,
}  # fmt: skip


def _store(store: PostgresStore) -> Params:
    """What the store must still be for the statement to find anything; and the time, where it is steered."""
    same = {"schema": SCHEMA, "epoch": store.identity.epoch}
    if not store.clock.steered:
        return same
    at = store.clock.instants(0, 0)
    return {**same, "now_ms": at.now_ms, "wall_ms": at.wall_ms}


def _handlers(ask: Claim) -> str | None:
    return _handlers_json(tuple(ask.handlers.items())) if ask.handlers else None


@lru_cache(maxsize=64)
def _handlers_json(handlers: tuple[tuple[str, Any], ...]) -> str | None:
    """What they set, by kind; None where they set nothing, as nothing is then looked for in it for each task."""
    set_by = {
        kind: {name: value for name in KNOBS if (value := getattr(knobs, name)) is not None}
        for kind, knobs in handlers
    }
    return _ENCODER.encode(set_by).decode() if any(set_by.values()) else None
