"""The blocking lease: one task, held; its verbs, and the block that keeps it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from relet.client import asks
from relet.client.belief import Belief
from relet.client.lease import BY_ITS_HOLDER, LEFT_OPEN, STORE_AWAY, HeldLease, LostInBlock
from relet.core import border
from relet.core.errors import Error, LeaseLost, OutcomeUnknown, Unavailable
from relet.core.model import End
from relet.core.payload import decode
from relet.core.rules.claim import Claim
from relet.core.rules.finish import Ended

if TYPE_CHECKING:
    from relet.client.blocking import Client


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
        except (Unavailable, OutcomeUnknown):
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
        if following is None and request_id is not None:
            raise border.invalid("request_id", "goes with claim_next=True; a completion alone needs none")
        sent_ms = client.clock.fast_ms()
        answer = client.backend.call(asks.complete([(handle, result)], following))
        client.settled(self.belief, End.COMPLETED, answer.outcomes[0])
        for error in (answer.outcomes[0], answer.grants):
            if isinstance(error, Error):
                raise error
        if following is None:
            return None
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
        with LostInBlock.told(self.belief), self.keep_quietly():
            yield self

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
        try:
            if raised is None:
                self.release()
                warnings.warn(LEFT_OPEN.format(task_id=self.task_id), RuntimeWarning, stacklevel=2)
            elif isinstance(raised, Exception) and not isinstance(raised, STORE_AWAY):
                self.fail(**LostInBlock.failure(raised))
            else:
                self.release()
        except LeaseLost as lost:
            if lost.reason not in BY_ITS_HOLDER:  # ended through its handle, and no beat has noticed yet
                raise
