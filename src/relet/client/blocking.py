"""The blocking client: one short method per verb."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import msgspec

from relet.client import asks
from relet.client.belief import Belief, end_all, read
from relet.client.blocking_lease import Lease
from relet.client.blocking_upkeep import UpkeepVerbs
from relet.client.blocking_work import WorkVerbs
from relet.client.clock import HolderClock, SystemHolderClock
from relet.client.files import Collecting, Files, Place
from relet.client.ids import default_holder
from relet.client.keeper import Keeper
from relet.client.lease import STORE_AWAY
from relet.client.renewal import renewal
from relet.client.views import Bulk, outcomes_of, result_of
from relet.core import border
from relet.core.advice import Advice
from relet.core.backend import Backend
from relet.core.errors import Error
from relet.core.model import End, Event, Grant, Rejection, Task
from relet.core.rules.claim import Claim
from relet.core.rules.finish import Ended
from relet.core.rules.inspect import Look, Stats
from relet.core.rules.queues import QueueState
from relet.core.rules.sweep import Sweep
from relet.core.tx import QueueRow

if TYPE_CHECKING:
    from relet.client.durable.sight import Witness

POLL_S = 0.25
CLAIM_POLL_S = 0.05
"""How late a claimer may notice that a holder has died, of which no commit tells."""


class Client(WorkVerbs, UpkeepVerbs):
    """A store, asked by blocking calls; one client serves all threads, and forked children too."""

    def __init__(
        self, backend: Backend, *, holder: str | None = None, clock: HolderClock | None = None,
        files: Callable[[], Place] | None = None, collecting: Collecting | None = None,
    ) -> None:  # fmt: skip
        self.backend = backend
        self.files = Files(files, collecting)
        self.clock = clock or SystemHolderClock()
        self.holder = None if holder is None else border.name("holder", holder)
        self.keeper = Keeper(backend, self.clock)
        self.witness: Witness | None = None
        """For tests: sees each call of an effect's function, and handlers that do not heed an order to stop."""

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
        return self._submit(asks.submit(queue, [self.files.filed("input", input)], [id], **options), tx)[0]

    def submit_many(
        self, queue: str, inputs: Sequence[Any], ids: Sequence[str | None] | None = None, *, tx: Any = None,
        **options: Any,
    ) -> list[Task]:  # fmt: skip
        """Put tasks into a queue, all or none.

        Options: `kind`, `priority` (larger first), `delay` or `at`, `deadline`, `ttl`, `timeout`, `max_hold`,
        `max_attempts`, `max_losses`, `exclusive` and `share` (keys), `labels`. Durations are seconds, timedeltas or
        text such as "90s"; times are aware datetimes. Raises `Invalid`, or `Conflict` for an id with other content.
        """
        if isinstance(inputs, (list, tuple)):
            single = len(inputs) == 1
            inputs = [
                self.files.filed("input" if single else f"inputs[{n}]", value) for n, value in enumerate(inputs)
            ]
        return self._submit(asks.submit(queue, inputs, ids, **options), tx)

    def _submit(self, ask: Any, tx: Any) -> list[Task]:
        tasks: list[Task] = self.backend.call(ask) if tx is None else self.backend.call_within(tx, ask)
        return [self._whole(task) for task in tasks]

    def _whole(self, task: Task) -> Task:
        """A task with its input and result, where those are kept as files.

        The address stands for a file that is gone: a task can be looked at all the same, and so can the others.
        """
        values = self.files.seen(task.input), self.files.seen(task.result)
        if values[0] is task.input and values[1] is task.result:
            return task
        return msgspec.structs.replace(task, input=values[0], result=values[1])

    def task(self, id: str) -> Task:
        """One task as it stands. Raises `NotFound`."""
        task: Task = self.backend.call(asks.find_task(id))
        return self._whole(task)

    def tasks(
        self, queue: str | None = None, state: str | None = None, labels: dict[str, str] | None = None, *,
        kind: str | None = None, limit: int = 100, after: str | None = None,
    ) -> list[Task]:  # fmt: skip
        """A page of tasks in the order in which they were made; `after` is the last id of the page before."""
        which = asks.task_filter(None, queue=queue, state=state, labels=labels, kind=kind)
        page: list[Task] = self.backend.call(asks.list_tasks(which, limit, after))
        return [self._whole(task) for task in page]

    def result(self, id: str, wait: Any = 0, returns: Any = None) -> Any:
        """The task's result, waiting up to `wait` for it, as `returns` where a type is given.

        Raises `TaskFailed`, `TaskCancelled`, or TimeoutError when it is not finished in time.
        """
        until = time.monotonic() + asks.wait_s(wait)
        while (found := result_of(self.task(id), returns, self.files.whole)) is None:
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
        return self._whole(task)

    def requeue(self, id: str) -> Task:
        """Give a failed or cancelled task another life."""
        task: Task = self.backend.call(asks.requeue(id))
        return self._whole(task)

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
        leases = self.claim_waiting(ask, wait)
        return leases[0] if leases else None

    def claim_many(
        self, queue: str | Sequence[str], n: int, *, holder: str | None = None, ttl: Any = None,
        kinds: Sequence[str] | None = None, wait: Any = 0, request_id: str | None = None,
    ) -> list[Lease]:  # fmt: skip
        """Take up to `n` tasks in one transaction."""
        ask = asks.claim(queue, self.holder_of(holder), n=n, ttl=ttl, kinds=kinds, request_id=request_id)
        return self.claim_waiting(ask, wait)

    def claim_waiting(self, ask: Claim, wait: Any) -> list[Lease]:
        """The leases that a claim is granted within `wait`."""
        wait_s = asks.wait_s(wait)
        if not wait_s:
            return self.claim_once(ask)
        until = time.monotonic() + wait_s
        while True:
            leases = self.claim_once(ask)
            left_s = until - time.monotonic()
            if leases or left_s <= 0:
                return leases
            self.backend.wait_for_change(min(left_s, CLAIM_POLL_S))

    def claim_once(self, ask: Claim) -> list[Lease]:
        """The leases that one claim was granted."""
        sent_ms = self.clock.fast_ms()
        return self.leases_of(self.backend.call(ask), sent_ms, ask)

    def leases_of(self, grants: list[Grant], sent_ms: float, ask: Claim | None = None) -> list[Lease]:
        """Leases of grants that were asked for at `sent_ms`."""
        seen = read(self.clock)
        return [Lease(self, Belief(grant, sent_ms, self.clock, seen=seen), ask) for grant in grants]

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
        try:
            answers = self.backend.call(renewal([belief.grant.handle for belief in beliefs]))
        except STORE_AWAY:
            for belief in beliefs:
                belief.miss()
            raise
        return outcomes_of(beliefs, answers, sent_ms)

    def complete_many(self, pairs: Sequence[tuple[Lease, Any]]) -> list[Ended | Error]:
        """Hand in results in one transaction: the outcome, or the error, for each."""
        beliefs, results = asks.completions(pairs)
        filed = [self.files.filed("result", result) for result in results]
        ask = asks.complete(zip([belief.grant.handle for belief in beliefs], filed, strict=True))
        outcomes: list[Ended | Error] = self.backend.call(ask).outcomes
        self.settled_all(End.COMPLETED, zip(beliefs, outcomes, strict=True))
        return outcomes

    def settled(self, belief: Belief, how: End, outcome: Ended | Error) -> None:
        """Take in the outcome of a verb that ends a lease."""
        self.settled_all(how, ((belief, outcome),))

    def settled_all(self, how: End, outcomes: Iterable[tuple[Belief, Ended | Error]]) -> None:
        """Take in the outcomes of a verb that ends leases."""
        ended = []
        for belief, outcome in outcomes:
            if isinstance(outcome, Error):
                belief.take_in(outcome)
            else:
                ended.append(belief)
        if ended:
            end_all(ended, how)
            self.keeper.remove_all(ended)

    # -- operators -----------------------------------------------------------------------------------------------

    def sweep(self) -> int:
        """Close what has lapsed or was held by the dead, what is overdue, and waits whose time is over; how many.

        Claims do this by themselves.
        """
        closed, more = self.backend.bury(), True
        while more:
            swept = self.backend.call(Sweep())
            closed, more = closed + swept.lapsed + swept.overdue + swept.unanswered, swept.more
        return closed

    def stats(self, queue: str | None = None) -> Stats:
        """How many tasks stand where, and how many writes were refused."""
        stats: Stats = self.backend.call(asks.stats(queue))
        return stats

    def advise(self, queue: str | None = None) -> list[Advice]:
        """Which ttl and `max_hold` fit a queue, or each one, with the figures behind it; see `relet advise`."""
        advice: list[Advice] = self.backend.call(asks.advise(queue))
        return advice

    def rejections(self, task_id: str | None = None, limit: int = 100, before: int | None = None) -> list[Rejection]:
        """Writes that were refused under a lost lease, newest first."""
        feed: list[Rejection] = self.backend.call(asks.rejections(task_id, limit, before))
        return [msgspec.structs.replace(one, result=self.files.seen(one.result)) for one in feed]

    def queue(
        self, name: str, *, paused: bool | None = None, ttl: Any = None, timeout: Any = None, max_hold: Any = None,
        max_attempts: int | None = None, max_losses: int | None = None, concurrency: Any = None,
        share_concurrency: Any = None, rate: Any = None, retention: Any = None,
    ) -> QueueRow:  # fmt: skip
        """Set knobs of a queue, and answer them all; a paused queue grants nothing.

        `concurrency` bounds its live leases and `share_concurrency` those of each share, `rate` its grants in a
        time ("100/m"); "none" lifts one of them. Leases that are held go on. Raises `Invalid`.
        """
        row: QueueRow = self.backend.call(asks.set_queue(
            name, paused=paused, ttl=ttl, timeout=timeout, max_hold=max_hold, max_attempts=max_attempts,
            max_losses=max_losses, concurrency=concurrency, share_concurrency=share_concurrency, rate=rate,
            retention=retention,
        ))  # fmt: skip
        return row

    def queues(self, name: str | None = None, share: str | None = None) -> list[QueueState]:
        """Each queue's limits, what is held of it, and what keeps its ready tasks from being granted, if anything.

        With a `name` that queue alone, as it stands for tasks of `share`.
        """
        found: list[QueueState] = []
        while page := self.backend.call(asks.queues(name, share, found[-1].name if found else "")):
            found += page
            if name is not None:
                break
        return found

    def _pause(self, until: float, what: str) -> None:
        left_s = until - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(what)
        self.backend.wait_for_change(min(left_s, POLL_S))
