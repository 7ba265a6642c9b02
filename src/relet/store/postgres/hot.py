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
from relet.core.model import Grant, Instants
from relet.core.payload import digest
from relet.core.rules.claim import Claim
from relet.core.rules.complete import DONE, Complete, Completed
from relet.core.rules.finish import kept
from relet.core.rules.grant import KNOBS, told
from relet.core.rules.guard import proven
from relet.store.postgres.schema import SCHEMA
from relet.store.postgres.texts import statement
from relet.store.rows import Row, lease_of, task_of
from relet.store.runner import Params
from relet.store.sql import LEASE_COLUMNS

if TYPE_CHECKING:
    from relet.store.postgres.engine import PostgresStore

_HEAD: Final = 6
_ENCODER: Final = msgspec.json.Encoder()
_TOLD: Final = kept(DONE)
NOT_PLAIN: Final = object()
"""The answer to what only the rule can answer; nothing was changed."""


class Question(NamedTuple):
    """A statement, its values, and how its one row is read."""

    name: str
    params: Params
    read: Callable[[Row], Any]


class Teller(NamedTuple):
    """As much of a transaction as proofs and grants ask for."""

    secret: Callable[[int, str], str]


def question_of(store: PostgresStore, ask: Any, tenant: str) -> Question | None:
    """The one statement that may answer a request; None where there is none."""
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
    clock_ms = row[_CLOCK_AT[question.name]]
    answer = question.read(row)
    if not store.clock.notice(clock_ms + row[0], row[1], sent_at):
        # What was granted or ended stands: neither is judged by how late it is. The next to be judged must wait.
        store.settle(1.0)
    return answer


_CLOCK_AT: Final = {"claim_one": _HEAD - 1, "complete_one": 3}


def _claim(store: PostgresStore, ask: Claim, tenant: str) -> Question | None:
    if ask.n != 1 or ask.task_id is not None or ask.request_id is not None or ask.again or len(ask.queues) != 1:
        return None
    teller: Any = Teller(store.secrets.secret)

    def read(row: Row) -> Any:
        is_clear, found, payload = row[2:5]
        if not is_clear or (found and payload is None):
            return NOT_PLAIN
        if not found:
            return []
        lease, task = lease_of(row[_HEAD : _HEAD + LEASE_COLUMNS]), task_of(row[_HEAD + LEASE_COLUMNS :])
        # As of the grant itself: the whole ttl is left.
        granted: Grant = told(teller, lease, task, Instants(lease.claimed_ms, lease.claimed_wall_ms), payload)
        return [granted]

    return Question("claim_one", {
        "schema": SCHEMA, "tenant": tenant, "queue": ask.queues[0], "holder": ask.holder, "call_id": ask.call_id,
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
        return Completed(outcomes=[DONE]) if row[2] else NOT_PLAIN

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
