"""What blocking and awaiting runs share: the lease, why they must stop, and which run is the current one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import msgspec

from relet.core.errors import Error, LeaseLost, LeaseStopped, Parked
from relet.core.holding import CHECK

if TYPE_CHECKING:
    from relet.client.blocking_lease import Lease
    from relet.client.durable.run import AsyncRun, Run

_CURRENT: ContextVar[Run | AsyncRun | None] = ContextVar("relet_run", default=None)


def current_run() -> Run | AsyncRun | None:
    """The run that this code works for; None outside of a handler. Carried into `asyncio.to_thread`."""
    return _CURRENT.get()


def enter(run: Run | AsyncRun) -> None:
    """Make it the current run of this thread or task."""
    _CURRENT.set(run)
    CHECK.set(run.check_held)


@contextmanager
def entered(run: Run | AsyncRun) -> Iterator[None]:
    """Make it the current run for a block."""
    before, asked_before = _CURRENT.set(run), CHECK.set(run.check_held)
    try:
        yield
    finally:
        _CURRENT.reset(before)
        CHECK.reset(asked_before)


ORDERS: Final = (Parked, LeaseStopped, asyncio.CancelledError)
"""What unwinds a handler and is no error of its own."""


def beside(raised: BaseException) -> BaseException | None:
    """The errors of its own that came up while a handler was unwound; None when there are none."""
    if isinstance(raised, BaseExceptionGroup):
        return raised.split(ORDERS)[1]
    return None if isinstance(raised, ORDERS) else raised


class RunTask(msgspec.Struct, frozen=True, kw_only=True):
    """The task of a run, as it was granted."""

    id: str
    queue: str
    kind: str
    input: Any
    labels: dict[str, str]
    attempt: int


class RunFacts:
    """Facts of one run; no verb."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.stopped: Error | None = None
        """Why the run must stop: the lease is lost, the task cancelled, the time over. None while it may go on."""
        self.parked: Parked | None = None
        """Set once the task waits; the lease has ended, and nothing of this run is sent any more."""
        self.told = False
        """Set once a call of this run has raised that it must stop."""
        self.draining = False
        """Set once the worker is asked to end: save what you have and return, or release the lease."""
        self._lock = threading.Lock()
        lease.belief.on_lost.append(self.stop)
        if lease.belief.cause is not None:
            self.stop(lease.belief.cause)  # lost before anybody could be told

    @property
    def task(self) -> RunTask:
        """The task, as it was granted."""
        lease = self.lease
        return RunTask(
            id=lease.task_id, queue=lease.queue, kind=lease.kind, input=lease.input, labels=lease.labels,
            attempt=lease.attempt,
        )  # fmt: skip

    @property
    def task_id(self) -> str:
        """The id of the task."""
        return self.lease.task_id

    @property
    def token(self) -> int:
        """The fencing token, for whatever is written elsewhere."""
        return self.lease.token

    @property
    def attempt(self) -> int:
        """1 + failures + losses so far."""
        return self.lease.attempt

    @property
    def holder(self) -> str:
        """The worker's label."""
        return self.lease.holder

    def stop(self, cause: Error) -> None:
        """No relet call of this run goes on from here; the first cause stands."""
        with self._lock:
            if self.stopped is not None:
                return
            self.stopped = cause
        self._deliver()

    def leave(self) -> None:
        """Its lease was ended by this process, so that nobody will be told of a loss: it need not be kept for that.

        What is in no circle is gone at once, and the collector of circles has that much less to do.
        """
        self.lease.belief.on_lost.remove(self.stop)

    def _deliver(self) -> None:
        """Tell code that is busy elsewhere; a blocking run hears it at its next relet call."""

    def must_stop(self) -> Error | None:
        """Why nothing may be sent any more; looks at this machine's own clock, too."""
        if self.parked is not None:
            raise self.parked
        self.lease.belief.lose_by_clock()
        return self.stopped

    def check_held(self, token: int) -> None:
        """As `require`, where the token is this run's: who writes under another one is none of its business."""
        if token == self.token:
            self.require(0)

    def require(self, need: Any) -> None:
        """Raise `LeaseLost` unless the lease is trusted for `need` more seconds, by this machine's own clock."""
        try:
            self.lease.belief.require(need)
        except LeaseLost as lost:
            if self.lease.status == "lost":
                self.stop(lost)
            raise
