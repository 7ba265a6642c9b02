"""A wait: the handler is unwound, the lease ends, and the next holder finds the answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from relet.client import work_asks
from relet.client.durable.book import Book
from relet.client.durable.hands import ASK_AGAIN_S
from relet.client.lease import STORE_AWAY
from relet.core import border
from relet.core.border import invalid
from relet.core.errors import OutcomeUnknown, Parked
from relet.core.model import LostReason
from relet.core.rules.park import Park, question_digest
from relet.core.work import Decision, DecisionKind, WaitKind

if TYPE_CHECKING:
    from relet.client.blocking_lease import Lease
    from relet.client.durable.facts import RunFacts
    from relet.client.durable.hands import Hands

SLEEP = "sleep"
_EFFECT: ContextVar[str | None] = ContextVar("relet_effect", default=None)


@contextmanager
def inside_effect(name: str) -> Iterator[None]:
    """Mark the code that runs in the function of an effect."""
    before = _EFFECT.set(name)
    try:
        yield
    finally:
        _EFFECT.reset(before)


class Waits:
    """The waits of one run."""

    def __init__(self, run: RunFacts, hands: Hands, book: Book) -> None:
        self._run = run
        self._hands = hands
        self._book = book

    async def approval(self, name: Any, ask: Any, timeout: Any, default: Any) -> Decision:
        """The decision on this very question."""
        return await self._wait(name, WaitKind.APPROVAL, ask, timeout, default)

    async def receive(self, name: Any, timeout: Any, default: Any) -> Any:
        """The payload of the next signal of this name."""
        decision = await self._wait(name, WaitKind.SIGNAL, None, timeout, default)
        if decision.kind is DecisionKind.TIMEOUT and default is None:
            raise TimeoutError(f"no signal {name!r} came in time")
        return decision.value

    async def sleep(self, duration: Any, name: Any) -> None:
        """Not before this much later."""
        ms = border.duration_ms("duration", duration)
        # How long is no part of the question: a duration that is computed anew would ask anew, and never end.
        await self._wait(SLEEP if name is None else name, WaitKind.TIMER, None, ms / 1_000, None)

    async def _wait(self, name: Any, kind: WaitKind, ask: Any, timeout: Any, default: Any) -> Decision:
        self._hands.go_on()
        request = work_asks.park(self._run.lease.belief.grant.handle, name, kind, ask, timeout, default)
        n = self._book.next_wait(request.name)
        text = bytes(request.ask).decode()
        found = await self._book.decision(request.name, n, question_digest(kind, text))
        if found is not None:
            return found
        raise await self.parked(work_asks.numbered(request, n))

    async def parked(self, request: Park) -> Parked:
        """Park; what unwinds the handler."""
        self._hands.go_on()
        if (effect := _EFFECT.get()) is not None:
            raise invalid(
                "name",
                f"a wait within the function of effect {effect!r} would leave its outcome unknown; wait before it",
            )
        parked: Parked = await self._hands.send(self._park, request)
        return parked

    def _park(self, request: Park) -> Parked:
        # Known to the run at once: whoever waits for this call may be cancelled before it returns.
        self._surely(request)
        self._run.parked = Parked(self._run.task_id, request.name)
        return self._run.parked

    def _surely(self, request: Park) -> None:
        """Ask while nobody answers and the lease may be held; the same question is answered as it was."""
        lease, unsure = self._run.lease, False
        while True:
            last = lease.status == "lost"
            try:
                lease.parks(request)
            except STORE_AWAY as away:
                unsure = unsure or isinstance(away, OutcomeUnknown)
                if last or (lease.status == "lost" and not (unsure and _is_closed(lease))):
                    raise
            else:
                return
            lease.lost.wait(ASK_AGAIN_S)


def _is_closed(lease: Lease) -> bool:
    """By its holder, so it may have been by the very question whose answer is missing."""
    cause = lease.belief.cause
    return cause is not None and cause.reason is LostReason.CLOSED
