"""The blocking client: one short method per verb."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self

import msgspec

from relet.client import asks
from relet.client.belief import Belief
from relet.client.clock import HolderClock, SystemHolderClock
from relet.client.ids import default_holder
from relet.client.keeper import Keeper
from relet.client.lease import LEFT_OPEN, HeldLease, LostInBlock
from relet.client.views import Bulk, outcome_of, result_of
from relet.core import border
from relet.core.backend import Backend
from relet.core.errors import Error, LeaseLost, Unavailable
from relet.core.model import End, Event, Grant, Rejection, Task
from relet.core.payload import decode
from relet.core.rules.claim import Claim
from relet.core.rules.finish import Ended
from relet.core.rules.inspect import Look, Stats
from relet.core.rules.sweep import Sweep
from relet.core.tx import QueueRow

POLL_S = 0.25


class Client:
    """A store, asked by blocking calls; one client serves all threads, and forked children too."""

    def __init__(self, backend: Backend, *, holder: str | None = None, clock: HolderClock | None = None) -> None:
        self.backend = backend
        self.clock = clock or SystemHolderClock()
        self.holder = None if holder is None else border.name("holder", holder)
        self.keeper = Keeper(backend, self.clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop keeping leases and let go of the store."""
        self.keeper.close()
        self.backend.close()

    @property
    def place(self) -> str:
        """Where the store is, in full."""
        return self.backend.place

    # -- tasks ---------------------------------------------------------------------------------------------------

    def submit(self, queue: str, input: Any = None, *, id: str | None = None, tx: Any = None, **options: Any) -> Task:
        """Put one task into a queue; see `submit_many` for the options. Safe to repeat by id."""
        return self._submit(asks.submit(queue, [input], [id], **options), tx)[0]

    def submit_many(
        self, queue: str, inputs: Sequence[Any], ids: Sequence[str | None] | None = None, *, tx: Any = None,
        **options: Any,
    ) -> list[Task]:  # fmt: skip
        """Put tasks into a queue, all or none.

        Options: `kind`, `priority` (larger first), `delay` or `at`, `deadline`, `ttl`, `timeout`, `max_hold`,
        `max_attempts`, `max_losses`, `exclusive` (a key), `labels`. Durations are seconds, timedeltas or text
        such as "90s"; times are aware datetimes. Raises `Invalid`, or `Conflict` for an id with other content.
        """
        return self._submit(asks.submit(queue, inputs, ids, **options), tx)

    def _submit(self, ask: Any, tx: Any) -> list[Task]:
        tasks: list[Task] = self.backend.call(ask) if tx is None else self.backend.call_within(tx, ask)
        return tasks

    def task(self, id: str) -> Task:
        """One task as it stands. Raises `NotFound`."""
        task: Task = self.backend.call(asks.find_task(id))
        return task

    def tasks(
        self, queue: str | None = None, state: str | None = None, labels: dict[str, str] | None = None, *,
        kind: str | None = None, limit: int = 100, after: str | None = None,
    ) -> list[Task]:  # fmt: skip
        """A page of tasks in the order in which they were made; `after` is the last id of the page before."""
        which = asks.task_filter(None, queue=queue, state=state, labels=labels, kind=kind)
        page: list[Task] = self.backend.call(asks.list_tasks(which, limit, after))
        return page

    def result(self, id: str, wait: Any = 0, returns: Any = None) -> Any:
        """The task's result, waiting up to `wait` for it, as `returns` where a type is given.

        Raises `TaskFailed`, `TaskCancelled`, or TimeoutError when it is not finished in time.
        """
        until = time.monotonic() + asks.wait_s(wait)
        while (found := result_of(self.task(id), returns)) is None:
            self._pause(until, f"task {id} is not finished")
        return found.value

    def history(self, id: str) -> list[Event]:
        """What happened to the task, oldest first."""
        events: list[Event] = []
        while page := self.backend.call(asks.history(id, events[-1].seq if events else 0)):
            events += page
        return events

    def watch(
        self, queue: str | None = None, task_id: str | None = None, after: int | None = None
    ) -> Iterator[Event]:
        """Changes as they happen, from now on, or after the `seq` of one seen before; never ends by itself."""
        ask = asks.changes(after, queue, task_id)
        page = self.backend.call(ask)

        def follow() -> Iterator[Event]:
            nonlocal page
            while True:
                yield from page.events
                if not page.events:
                    self.backend.wait_for_change(POLL_S)
                page = self.backend.call(msgspec.structs.replace(ask, after=page.cursor))

        return follow()

    def cancel(self, id: str, reason: str = "") -> Task:
        """Stop a task: at once when nobody holds it, else when its holder gives way. Raises `Conflict` when done."""
        task: Task = self.backend.call(asks.cancel(id, reason))
        return task

    def requeue(self, id: str) -> Task:
        """Give a failed or cancelled task another life."""
        task: Task = self.backend.call(asks.requeue(id))
        return task

    def cancel_many(
        self, filter: dict[str, Any] | None = None, *, reason: str = "", dry_run: bool = False, **conditions: Any
    ) -> Bulk:  # fmt: skip
        """Stop all unfinished tasks that match; conditions are `queue`, `kind`, `state`, `labels`."""
        which = asks.task_filter(filter, **conditions)
        return self._bulk(lambda after: asks.cancel_many(which, reason, dry_run, after), dry_run)

    def requeue_many(self, filter: dict[str, Any] | None = None, *, dry_run: bool = False, **conditions: Any) -> Bulk:
        """Give all dead letters that match another life; without a state only failed ones are meant."""
        which = asks.task_filter(filter, **conditions)
        return self._bulk(lambda after: asks.requeue_many(which, dry_run, after), dry_run)

    def _bulk(self, ask: Any, dry_run: bool) -> Bulk:
        ids: list[str] = []
        cursor: int | None = 0
        while cursor is not None:
            batch = self.backend.call(ask(cursor))
            ids += batch.ids
            cursor = batch.cursor
        return Bulk(ids=ids, dry_run=dry_run)

    # -- leases --------------------------------------------------------------------------------------------------

    def claim(
        self, queue: str | Sequence[str] | None = None, *, holder: str | None = None, ttl: Any = None,
        kinds: Sequence[str] | None = None, wait: Any = 0, request_id: str | None = None, task_id: str | None = None,
        handle: Any = None,
    ) -> Lease | None:  # fmt: skip
        """Take one task, or None when there is none within `wait`.

        `queue` is a name or a list of them; `task_id` takes that very task. Repeating a `request_id` gets the
        same lease again, or `LeaseLost` when that one has ended.
        """
        ask = asks.claim(
            queue, self.holder_of(holder), ttl=ttl, kinds=kinds, request_id=request_id, task=task_id, handle=handle,
        )  # fmt: skip
        leases = self._claim(ask, wait)
        return leases[0] if leases else None

    def claim_many(
        self, queue: str | Sequence[str], n: int, *, holder: str | None = None, ttl: Any = None,
        kinds: Sequence[str] | None = None, wait: Any = 0, request_id: str | None = None,
    ) -> list[Lease]:  # fmt: skip
        """Take up to `n` tasks in one transaction."""
        ask = asks.claim(queue, self.holder_of(holder), n=n, ttl=ttl, kinds=kinds, request_id=request_id)
        return self._claim(ask, wait)

    def _claim(self, ask: Claim, wait: Any) -> list[Lease]:
        until = time.monotonic() + asks.wait_s(wait)
        while True:
            leases = self.claim_once(ask)
            left_s = until - time.monotonic()
            if leases or left_s <= 0:
                return leases
            self.backend.wait_for_change(min(left_s, POLL_S))

    def claim_once(self, ask: Claim) -> list[Lease]:
        """The leases that one claim was granted."""
        sent_ms = self.clock.fast_ms()
        return self.leases_of(self.backend.call(ask), sent_ms, ask)

    def leases_of(self, grants: list[Grant], sent_ms: float, ask: Claim | None = None) -> list[Lease]:
        """Leases of grants that were asked for at `sent_ms`."""
        return [Lease(self, Belief(grant, sent_ms, self.clock), ask) for grant in grants]

    def holder_of(self, holder: str | None) -> str:
        """The holder to claim as: the one given, the client's, or host and process."""
        return holder if holder is not None else self.holder or default_holder()

    def lease(self, handle: Any) -> Lease:
        """The lease of a handle, in any process. A lost one is answered too, and its verbs are refused."""
        sent_ms = self.clock.fast_ms()
        found = self.backend.call(Look(handle=asks.handle_of(handle)))
        return Lease(self, Belief(found.grant, sent_ms, self.clock, lost=found.lost))

    def renew_many(self, leases: Sequence[Lease]) -> list[float | Error]:
        """Renew leases in one transaction: seconds left, or the error, for each."""
        beliefs = asks.beliefs(leases)
        sent_ms = self.clock.fast_ms()
        answers = self.backend.call(asks.renew([belief.grant.handle for belief in beliefs]))
        return [outcome_of(belief, answer, sent_ms) for belief, answer in zip(beliefs, answers, strict=True)]

    def complete_many(self, pairs: Sequence[tuple[Lease, Any]]) -> list[Ended | Error]:
        """Hand in results in one transaction: the outcome, or the error, for each."""
        beliefs, results = asks.completions(pairs)
        ask = asks.complete(zip([belief.grant.handle for belief in beliefs], results, strict=True))
        outcomes: list[Ended | Error] = self.backend.call(ask).outcomes
        for belief, outcome in zip(beliefs, outcomes, strict=True):
            self.settled(belief, End.COMPLETED, outcome)
        return outcomes

    def settled(self, belief: Belief, how: End, outcome: Ended | Error) -> None:
        """Take in the outcome of a verb that ends a lease."""
        if isinstance(outcome, Error):
            belief.take_in(outcome)
        else:
            belief.end(how)
            self.keeper.remove(belief)

    # -- operators -----------------------------------------------------------------------------------------------

    def sweep(self) -> int:
        """Close what has lapsed and what is overdue; answers how many. Claims do this by themselves."""
        closed, more = 0, True
        while more:
            swept = self.backend.call(Sweep())
            closed, more = closed + swept.lapsed + swept.overdue, swept.more
        return closed

    def stats(self, queue: str | None = None) -> Stats:
        """How many tasks stand where, and how many writes were refused."""
        stats: Stats = self.backend.call(asks.stats(queue))
        return stats

    def rejections(self, task_id: str | None = None, limit: int = 100, before: int | None = None) -> list[Rejection]:
        """Writes that were refused under a lost lease, newest first."""
        feed: list[Rejection] = self.backend.call(asks.rejections(task_id, limit, before))
        return feed

    def queue(
        self, name: str, *, paused: bool | None = None, ttl: Any = None, timeout: Any = None, max_hold: Any = None,
        max_attempts: int | None = None, max_losses: int | None = None, concurrency: int | None = None,
        rate: Any = None, retention: Any = None,
    ) -> QueueRow:  # fmt: skip
        """Set knobs of a queue, and answer them all; a paused queue grants nothing."""
        row: QueueRow = self.backend.call(asks.set_queue(
            name, paused=paused, ttl=ttl, timeout=timeout, max_hold=max_hold, max_attempts=max_attempts,
            max_losses=max_losses, concurrency=concurrency, rate=rate, retention=retention,
        ))  # fmt: skip
        return row

    def _pause(self, until: float, what: str) -> None:
        left_s = until - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(what)
        self.backend.wait_for_change(min(left_s, POLL_S))


class Lease(HeldLease):
    """One task, held. Its verbs are sent, and judged by the store alone.

    As a `with` block it renews itself: an exception fails the attempt, KeyboardInterrupt releases it, and a
    block left without an ending verb releases with a warning.
    """

    def __init__(self, client: Client, belief: Belief, following: Claim | None = None) -> None:
        super().__init__(belief, following)
        self._client = client

    def renew(self, ttl: Any = None) -> float:
        """Set the end to a ttl from now; seconds left. Raises `LeaseLost`."""
        sent_ms = self._client.clock.fast_ms()
        try:
            answers = self._client.backend.call(asks.renew([self.belief.grant.handle], ttl))
        except Unavailable:
            self.belief.miss()
            raise
        return self.belief.confirm(answers[0], sent_ms)

    def check(self, need: Any = 0) -> None:
        """Raise `LeaseLost` when it is not yours any more, or is trusted for fewer than `need` seconds.

        Asks this machine's own clock; in doubt it renews first.
        """
        self.belief.require(need)
        if self.belief.is_doubtful():
            with suppress(LeaseLost):  # refused as capped, it is held to its deadline all the same
                self.renew()
            self.belief.require(need)

    def save(self, value: Any, name: str = "main") -> int:
        """Keep a JSON value for the next holder; how often this name has been saved."""
        return int(self._sent(asks.save(self.belief.grant.handle, value, name)).version)

    def load(self, name: str = "main") -> Any:
        """What any holder of the task saved last under the name; None when nothing was."""
        return decode(self._client.backend.call(asks.load(self.belief.grant.handle, name)))

    def complete(self, result: Any = None, claim_next: bool = False, request_id: str | None = None) -> Lease | None:
        """Hand in the result. With `claim_next` the next lease of the same queues, in the same transaction."""
        client, handle = self._client, self.belief.grant.handle
        following = self._next(request_id) if border.flag("claim_next", claim_next) else None
        sent_ms = client.clock.fast_ms()
        answer = client.backend.call(asks.complete([(handle, result)], following))
        client.settled(self.belief, End.COMPLETED, answer.outcomes[0])
        for error in (answer.outcomes[0], answer.grants):
            if isinstance(error, Error):
                raise error
        leases = client.leases_of(answer.grants, sent_ms, following)
        return leases[0] if leases else None

    def _next(self, request_id: str | None) -> Claim:
        before = self.following
        if before is not None and before.queues and request_id is None:
            return asks.once_more(before)
        return asks.claim(
            before.queues if before is not None and before.queues else self.queue, self.holder,
            ttl=None if before is None or before.ttl_ms is None else before.ttl_ms / 1_000,
            kinds=None if before is None else before.kinds, request_id=request_id,
        )  # fmt: skip

    def fail(self, error: str, retry: bool = True, delay: Any = None, code: str | None = None) -> Ended:
        """End the attempt: ready again after `delay` or the backoff, or for good."""
        return self._end(End.FAILED, asks.fail(self.belief.grant.handle, error, retry, delay, code))

    def release(self, delay: Any = 0) -> Ended:
        """Give the task back unfinished; costs no attempt."""
        return self._end(End.RELEASED, asks.release(self.belief.grant.handle, delay))

    def _end(self, how: End, ask: Any) -> Ended:
        ended: Ended = self._sent(ask)
        self._client.settled(self.belief, how, ended)
        return ended

    def _sent(self, ask: Any) -> Any:
        try:
            return self._client.backend.call(ask)
        except Error as refused:
            self.belief.take_in(refused)
            raise

    @contextmanager
    def keep_quietly(self) -> Iterator[Self]:
        """The heartbeat alone; a loss is left for the block itself to see."""
        self._client.keeper.add(self.belief)
        try:
            yield self
        finally:
            self._client.keeper.remove(self.belief)

    @contextmanager
    def keep(self, interval: Any = None) -> Iterator[Self]:
        """The heartbeat alone, for a block; a loss is raised at its end. `interval` is at most half the ttl."""
        self.belief.beat_every(interval)
        self._client.keeper.add(self.belief)
        raised: BaseException | None = None
        try:
            yield self
        except BaseException as error:
            raised = error
            raise
        finally:
            self._client.keeper.remove(self.belief)
            if (loss := LostInBlock.loss(self.belief, raised)) is not None:
                raise loss from raised

    def __enter__(self) -> Self:
        self._client.keeper.add(self.belief)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.keeper.remove(self.belief)
        if (loss := LostInBlock.loss(self.belief, raised)) is not None:
            raise loss from raised
        if self.belief.ended is not None or self.belief.is_lost:
            return
        if raised is None:
            self.release()
            warnings.warn(LEFT_OPEN.format(task_id=self.task_id), RuntimeWarning, stacklevel=2)
        elif isinstance(raised, Exception):
            self.fail(**LostInBlock.failure(raised))
        else:
            self.release()
