"""claim, for many at once: tasks that nobody held before, and that want no key, are granted together."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final

import msgspec

from relet.core import limits
from relet.core.errors import Error
from relet.core.model import Cause, Grant, Instants, State
from relet.core.rules.claim import Claim, claim, grant_to, is_free
from relet.core.rules.grant import Terms, are_readable, new_lease, terms_of, told
from relet.core.tx import QueueRow, TaskRow
from relet.store.sql import SqlTx

_ENCODER: Final = msgspec.json.Encoder()


def claim_at_once(tx: SqlTx, ask: Claim) -> Coroutine[Any, Any, list[Grant] | Error]:
    """As the rule, which is asked about one task, and about a request that may be a repetition."""
    if ask.n == 1 or ask.task_id is not None or ask.request_id is not None or ask.again:
        return claim(tx, ask)
    return _claim_many(tx, ask)


async def _claim_many(tx: SqlTx, ask: Claim) -> list[Grant] | Error:
    grants: list[Grant] = []
    for name in ask.queues:
        n = ask.n - len(grants)
        if n <= 0:
            break
        ahead = await tx.look_ahead(name)
        queue = ahead.queue
        if not ahead.is_clear or (queue is not None and (queue.paused or queue.is_bounded)):
            judged = await claim(tx, msgspec.structs.replace(ask, queues=[name], n=n))
            assert isinstance(judged, list), "only a repetition is refused"
            grants += judged
        elif ahead.first is not None:
            grants += await _take(tx, ask, queue, name, n)
    return grants


async def _take(tx: SqlTx, ask: Claim, queue: QueueRow | None, name: str, n: int) -> list[Grant]:
    grants: list[Grant] = []
    after: tuple[int, int] | None = None
    page = min(n, limits.READY_PAGE)
    plain = _Plain(tx, ask, queue)
    while len(grants) < n:
        tasks, at = await tx.lock_ready(name, ask.kinds, after, page)
        for task in tasks:
            if len(grants) == n:
                break
            if not are_readable(task.labels):
                continue
            if task.token == 0 and task.exclusive is None:
                grants.append(plain.grant(task, at, await tx.run.next_token()))
                continue
            plain.send()
            if await is_free(tx, task, at):
                grants.append(await grant_to(tx, ask, queue, task, at))
        plain.send()
        if len(tasks) < page:
            break
        after, page = (tasks[-1].priority, tasks[-1].seq), limits.READY_PAGE
    return grants


class _Plain:
    """Grants of tasks that nobody held before, by one claim from one queue."""

    def __init__(self, tx: SqlTx, ask: Claim, queue: QueueRow | None) -> None:
        self._tx, self._ask, self._queue = tx, ask, queue
        self._terms: dict[tuple[Any, ...], Terms] = {}
        self._details: dict[tuple[int, int], str] = {}
        self._leases: list[tuple[Any, ...]] = []
        self._events: list[tuple[Any, ...]] = []
        self._tasks: list[tuple[Any, ...]] = []

    def grant(self, task: TaskRow, at: Instants, token: int) -> Grant:
        """The grant of one task; its rows are kept until `send`."""
        ask, (now_ms, wall_ms), seq = self._ask, at, self._tx.run.next_event()
        lease = new_lease(task, at, token, ask.holder, self._terms_of(task), ask.call_id)
        told_of = lease.ttl_ms, task.attempt
        if (detail := self._details.get(told_of)) is None:
            detail = _ENCODER.encode({"ttl_ms": lease.ttl_ms, "attempt": task.attempt}).decode()
            self._details[told_of] = detail
        self._leases.append(msgspec.structs.astuple(lease))
        self._events.append((
            seq, task.seq, task.last_event, Cause.CLAIMED, State.LEASED, token, ask.holder, now_ms, wall_ms, detail,
        ))  # fmt: skip
        self._tasks.append((State.LEASED, token, wall_ms, seq, task.seq))
        return told(self._tx, lease, task, at, self._tx.inputs[task.seq])

    def send(self) -> None:
        """Hand over what was granted, before anything else is read or written."""
        if self._leases:
            self._tx.run.do_all("insert_lease", self._leases)
            self._tx.run.do_all("add_event", self._events)
            self._tx.run.do_all("take_task", self._tasks)
            self._leases, self._events, self._tasks = [], [], []

    def _terms_of(self, task: TaskRow) -> Terms:
        """Found once for all tasks of a kind that were submitted alike."""
        alike = (task.kind, task.ttl_ms, task.timeout_ms, task.max_hold_ms, task.max_attempts, task.max_losses)
        if (terms := self._terms.get(alike)) is None:
            levels = (self._ask.handlers.get(task.kind), self._queue)
            terms = self._terms[alike] = terms_of(task, self._ask.ttl_ms, levels)
        return terms
