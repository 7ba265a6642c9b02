"""One claim and one completion in one statement each, and so in one round trip, where all about them is plain.

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
from relet.core.rules.grant import KNOBS
from relet.core.rules.guard import proven
from relet.store.postgres.clock import StoreClock
from relet.store.postgres.schema import SCHEMA
from relet.store.postgres.texts import statement
from relet.store.rows import Row
from relet.store.runner import Params

if TYPE_CHECKING:
    from relet.store.postgres.engine import PostgresStore

_HEAD: Final = 3
"""Columns that each answer begins with: what is added to the server's clock, how often it was changed, the clock."""
LOOK_EVERY_MS: Final = 20
"""What falls due or lapses is looked for by the rule, so often at least."""
_ENCODER: Final = msgspec.json.Encoder()
_TOLD: Final = kept(DONE)
NOT_PLAIN: Final = object()
"""The answer to what only the rule can answer; nothing was changed."""


class Question(NamedTuple):
    """A statement, its values, and how its one row is read."""

    name: str
    params: Params
    read: Callable[[Row], Any]


class Looks:
    """When a rule last looked for what has fallen due or lapsed in a queue, by this process's clock."""

    def __init__(self, clock: StoreClock) -> None:
        self._clock = clock
        self._at: dict[tuple[str, str], float] = {}

    def note(self, tenant: str, queues: list[str]) -> None:
        """A claim by the rule begins now."""
        now_ms = self._clock.elapsed_ms()
        for queue in queues:
            self._at[tenant, queue] = now_ms

    def is_fresh(self, tenant: str, queue: str) -> bool:
        """Was it a moment ago: nothing can have lapsed or fallen due since that cannot wait for the next look."""
        return self._clock.elapsed_ms() - self._at.get((tenant, queue), -LOOK_EVERY_MS) < LOOK_EVERY_MS


class Teller(NamedTuple):
    """As much of a transaction as proofs and grants ask for."""

    secret: Callable[[int, str], str]


def question_of(store: PostgresStore, ask: Any, tenant: str) -> Question | None:
    """The one statement that may answer a request; None where there is none."""
    if not store.is_hot:
        return None
    if type(ask) is Claim:
        return _claim(store, ask, tenant)
    if type(ask) is Complete and ask.next is None and len(ask.completions) == 1:
        return _complete(store, ask, tenant)
    return None


def asked(store: PostgresStore, cursor: psycopg.Cursor[Any], question: Question) -> Any:
    """The answer, or `NOT_PLAIN`."""
    known = statement(question.name, store.dialect)
    sent_at = store.clock.elapsed_ms()
    row = cursor.execute(known.text, known.values(question.params)).fetchone()
    if row is None:
        return NOT_PLAIN
    ahead_ms, steps, clock_ms = row[:_HEAD]
    answer = question.read(row)
    # What was granted or ended stands, were the clock stepped: neither is judged by how late it is. The next
    # transaction that judges sees it as well, and settles it; here an error would hide what was committed.
    store.clock.notice(clock_ms + ahead_ms, steps, sent_at)
    return answer


def _claim(store: PostgresStore, ask: Claim, tenant: str) -> Question | None:
    if ask.n != 1 or ask.task_id is not None or ask.request_id is not None or ask.again or len(ask.queues) != 1:
        return None
    (queue,) = ask.queues
    if not store.looks.is_fresh(tenant, queue):
        return None

    def read(row: Row) -> Any:
        token, attempt, ttl_ms, timeout_ms, claimed_ms, claimed_wall_ms, expires_ms, *of_task = row[_HEAD:]
        if token is None:
            return NOT_PLAIN  # also where there is nothing to take: the rule has more to look at
        task_id, kind, labels, deadline_wall_ms, progress, payload = of_task
        return [Grant(
            handle=Handle(task_id, token, store.secrets.secret(token, task_id)), queue=queue, kind=kind,
            holder=ask.holder, attempt=attempt, input=msgspec.Raw(payload.encode()),
            labels=decode(labels) if labels else {}, ttl_ms=ttl_ms, left_ms=expires_ms - claimed_ms, held_ms=0,
            timeout_ms=timeout_ms,
            deadline_left_ms=None if deadline_wall_ms is None else deadline_wall_ms - claimed_wall_ms,
            progress=progress, took_over=None,
        )]  # fmt: skip

    return Question("claim_one", {
        "schema": SCHEMA, "tenant": tenant, "queue": queue, "holder": ask.holder, "call_id": ask.call_id,
        "ttl_ms": ask.ttl_ms or None, "kinds": None if ask.kinds is None else _ENCODER.encode(ask.kinds).decode(),
        "handlers": _handlers(ask), **_DEFAULTS, **_steered(store),
    }, read)  # fmt: skip


def _complete(store: PostgresStore, ask: Complete, tenant: str) -> Question | None:
    (item,) = ask.completions
    teller: Any = Teller(store.secrets.secret)
    if not proven(teller, item.handle):
        return None
    result = bytes(item.result).decode()

    def read(row: Row) -> Any:
        return Completed(outcomes=[DONE]) if row[_HEAD] else NOT_PLAIN

    return Question("complete_one", {
        "schema": SCHEMA, "tenant": tenant, "token": item.handle.token, "task_id": item.handle.task_id,
        "digest": digest(result), "answer": _TOLD, "result": result, **_steered(store),
    }, read)  # fmt: skip


_DEFAULTS: Final = {
    "default_ttl_ms": limits.TTL_MS, "default_max_attempts": limits.MAX_ATTEMPTS,
    "default_max_losses": limits.MAX_LOSSES, "default_backoff_base_ms": limits.BACKOFF_BASE_MS,
    "default_backoff_cap_ms": limits.BACKOFF_CAP_MS,
}  # fmt: skip


def _steered(store: PostgresStore) -> Params:
    if not store.clock.steered:
        return {}
    at = store.clock.instants(0, 0)
    return {"now_ms": at.now_ms, "wall_ms": at.wall_ms}


def _handlers(ask: Claim) -> str:
    if not ask.handlers:
        return "{}"
    return _handlers_json(tuple(ask.handlers.items()))


@lru_cache(maxsize=64)
def _handlers_json(handlers: tuple[tuple[str, Any], ...]) -> str:
    set_by = {
        kind: {name: value for name in KNOBS if (value := getattr(knobs, name)) is not None}
        for kind, knobs in handlers
    }
    return _ENCODER.encode(set_by).decode()
