"""What passes through the service of tasks and leases: how long they waited, and how near to their end they came."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from relet.core import limits
from relet.core.errors import Error, LeaseLost
from relet.core.model import Grant, Handle, LostReason, Task
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete
from relet.core.rules.fail import Fail
from relet.core.rules.park import Park
from relet.core.rules.release import Release
from relet.core.rules.renew import Renew, Renewed
from relet.core.rules.submit import Submit
from relet.server.exposition import Board
from relet.server.figures import CLAIM_LATENCY, RENEWAL_MARGIN, TAKEOVER

QUEUES_MAX: Final = 100
OTHER: Final = "other"
"""In place of all further queues, and of one whose lease was granted before this process began."""
TASKS_KNOWN: Final = 50_000
LEASES_KNOWN: Final = 50_000
LOST_KNOWN: Final = 10_000
"""Leases that another holder has taken over: who had one may yet send a heartbeat, or never again."""
_TOO_LATE: Final = (LostReason.EXPIRED, LostReason.SUPERSEDED)


class Panel:
    """The figures of one tenant, or of those whose credential is not known."""

    def __init__(self) -> None:
        self.board = Board()
        # By itself, so that all that is remembered of a queue shares one text.
        self._queues: dict[str, str] = {}

    def queue(self, name: str) -> str:
        """The queue as a label: its name, while it is among the first hundred."""
        if len(self._queues) < QUEUES_MAX:
            return self._queues.setdefault(name, name)
        return self._queues.get(name, OTHER)


class Beat(msgspec.Struct, gc=False):
    """The newest heartbeat of a lease, the grant itself at first, by this process's clock."""

    at: float
    until: float
    """When the lease ends without another."""
    ttl_s: float
    queue: str


class Passing:
    """Remembers what came last of it, and no more."""

    def __init__(self) -> None:
        self._ready: OrderedDict[tuple[str, str], float] = OrderedDict()
        # Whoever holds a lease renews it: those that have lapsed are the ones that are pushed out.
        self._beats: OrderedDict[int, Beat] = OrderedDict()
        # Their queues alone, that what a fleet of dead holders leaves behind takes next to no memory.
        self._lost: OrderedDict[int, str] = OrderedDict()

    def saw(self, panel: Panel, tenant: str, ask: Any, answer: Any, asked_at: float, now: float) -> None:
        """A request and its answer, and when they came, by one clock."""
        match ask:
            case Submit():
                self._submitted(tenant, answer, now)
            case Claim():
                self._granted(panel, tenant, answer, now)
            case Complete():
                self._ended(
                    one.handle
                    for one, outcome in zip(ask.completions, answer.outcomes, strict=True)
                    if not isinstance(outcome, Error)
                )
                if not isinstance(answer.grants, Error):
                    self._granted(panel, tenant, answer.grants, now)
            case Fail() | Release() | Park():
                self._ended([ask.handle])
            case Renew():
                self._renewed(panel, ask, answer, asked_at, now)
            case _:
                pass

    def _submitted(self, tenant: str, tasks: Iterable[Task], now: float) -> None:
        for task in tasks:
            if task.created:
                delay = task.due_at - task.created_at if task.due_at is not None else None
                self._ready[tenant, task.id] = now + (0.0 if delay is None else delay.total_seconds())
        while len(self._ready) > TASKS_KNOWN:
            self._ready.popitem(last=False)

    def _granted(self, panel: Panel, tenant: str, grants: Iterable[Grant], now: float) -> None:
        for grant in grants:
            queue, granted_at = panel.queue(grant.queue), now - grant.held_ms / limits.SECOND_MS
            if (ready_at := self._ready.pop((tenant, grant.handle.task_id), None)) is not None:
                panel.board.observe(CLAIM_LATENCY, max(0.0, granted_at - ready_at), queue)
            # A grant that is known already is the answer to a repeated request.
            if grant.took_over is not None and grant.handle.token not in self._beats:
                self._taken_over(panel, grant.took_over.token, granted_at, queue)
            until, ttl_s = now + grant.left_ms / limits.SECOND_MS, grant.ttl_ms / limits.SECOND_MS
            self._keep(grant.handle.token, Beat(granted_at, until, ttl_s, queue))

    def _ended(self, handles: Iterable[Handle]) -> None:
        """By their holders: nobody takes over what they held, and no heartbeat of theirs comes too late."""
        for handle in handles:
            self._beats.pop(handle.token, None)

    def _taken_over(self, panel: Panel, token: int, granted_at: float, queue: str) -> None:
        if (last := self._beats.pop(token, None)) is not None:
            panel.board.observe(TAKEOVER, max(0.0, granted_at - last.at), queue)
            self._lost[token] = last.queue
            if len(self._lost) > LOST_KNOWN:
                self._lost.popitem(last=False)

    def _renewed(
        self, panel: Panel, ask: Renew, answers: Iterable[Renewed | Error], asked_at: float, now: float
    ) -> None:
        observe = panel.board.observe
        for handle, answer in zip(ask.handles, answers, strict=True):
            last = self._beats.get(handle.token)
            if isinstance(answer, Renewed):
                left_s = answer.left_ms / limits.SECOND_MS
                if last is None:
                    self._keep(handle.token, Beat(now, now + left_s, left_s, OTHER))
                    continue
                observe(RENEWAL_MARGIN, max(0.0, (last.until - asked_at) / last.ttl_s), last.queue)
                last.at, last.until = now, now + left_s
                if not answer.capped:
                    last.ttl_s = left_s
                self._beats.move_to_end(handle.token)
            elif isinstance(answer, LeaseLost) and answer.reason in _TOO_LATE:
                queue = self._lost.get(handle.token) if last is None else last.queue
                if queue is not None:
                    observe(RENEWAL_MARGIN, 0.0, queue)

    def _keep(self, token: int, beat: Beat) -> None:
        if token in self._lost:
            return  # it was renewed or granted before that, and is told of after it
        self._beats[token] = beat
        self._beats.move_to_end(token)
        if len(self._beats) > LEASES_KNOWN:
            self._beats.popitem(last=False)
