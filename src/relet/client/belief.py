"""A held lease as its process sees it: the grant, the belief in it, and who is told when it is lost."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from relet.client.clock import HolderClock
from relet.client.silence import Silence
from relet.core import border
from relet.core.errors import Error, LeaseLost
from relet.core.model import End, GivenBack, Grant, LostReason
from relet.core.payload import decode
from relet.core.rules.renew import Renewed
from relet.core.trust import Status, Trust, interval_ms

BY_END: Final = {End.RELEASED: LostReason.RELEASED}
CLOSED: Final = LostReason.CLOSED


Seen = tuple[float, float, float]
"""The holder's clock, the wall's, and how long the machine was suspended; milliseconds."""


class Belief:
    """Shared by the lease, its block and the keeper; every method may be called from any thread."""

    def __init__(
        self, grant: Grant, sent_ms: float, clock: HolderClock, *, lost: LostReason | None = None,
        seen: Seen | None = None,
    ) -> None:  # fmt: skip
        """`seen` are the clocks as they stand, where somebody has just looked for many."""
        self.grant = grant
        self.clock = clock
        self.trust = Trust(sent_ms=sent_ms, left_ms=grant.left_ms, ttl_ms=grant.ttl_ms)
        self.trust.observe(*(seen or seen_now(clock)))
        self.is_lost = False
        self.cause: LeaseLost | None = None
        self.ended: End | None = None
        """The verb by which this very process ended the lease."""
        self.on_lost: list[Callable[[LeaseLost], None]] = []
        self.silence: Silence | None = None
        self.news: Callable[[], None] | None = None
        """Takes in what another process has heard of this lease, before anything is judged by it."""
        self.on_confirmed: Callable[[float, float, bool], None] | None = None
        """Told of each renewal: when it was sent, the milliseconds left, and whether it was the last."""
        self._owes: GivenBack | None = None
        self._event: threading.Event | None = None
        if lost is not None:
            self.lose(self.lost_error(lost))

    @property
    def lost(self) -> threading.Event:
        """Set when the lease is lost; made when first asked for."""
        with _guard():
            if self._event is None:
                self._event = threading.Event()
                if self.is_lost:
                    self._event.set()
            return self._event

    @property
    def input(self) -> Any:
        """The task's input."""
        return decode(self.grant.input)

    @property
    def expires_in(self) -> float:
        """Seconds until the store ends the lease, measured from before the last request that it answered."""
        if self.is_lost or self.ended is not None:
            return 0.0
        return max(0.0, (self.trust.until_ms - self.clock.fast_ms()) / 1_000)

    @property
    def last_heartbeat(self) -> datetime:
        """When the last request that the store answered for this lease was sent."""
        return self._wall(self.trust.renewed_ms)

    @property
    def renew_by(self) -> datetime:
        """When the next heartbeat is due; past it the lease is at risk, not lost."""
        return self._wall(self.trust.renewed_ms + self.trust.interval_ms)

    @property
    def status(self) -> Status:
        """held, doubtful or lost."""
        if self.is_lost or self.ended is not None:
            return Status.LOST
        if self.news is not None:
            self.news()
        return self.trust.status(self.clock.fast_ms())

    @property
    def is_silent(self) -> bool:
        """Has nothing moved under it for longer than its handler allows."""
        return self.silence is not None and self.silence.is_too_long

    def renew_at_ms(self) -> float | None:
        """When the next beat is due; None when none is."""
        return None if self.is_silent else self.trust.renew_at_ms()

    def wake_at_ms(self) -> float | None:
        """When its keeper must look again."""
        at_ms = self.trust.wake_at_ms()
        return self.trust.deadline_ms if at_ms is not None and self.is_silent else at_ms

    def beat_every(self, interval: Any) -> None:
        """Renew at this interval, a third of the ttl unless given. Raises `Invalid` over half the ttl."""
        asked_ms = border.maybe_duration_ms("interval", interval, least=1)
        self.trust.interval_ms = interval_ms(self.trust.ttl_ms, asked_ms)

    def confirm(self, answer: Renewed | Error, sent_ms: float) -> float:
        """Take in the store's answer to a renewal; seconds left. Raises what the store refused with."""
        if isinstance(answer, Error):
            self.take_in(answer)
            raise answer
        with _guard():
            self.trust.confirm(sent_ms=sent_ms, left_ms=answer.left_ms, capped=answer.capped)
        if self.on_confirmed is not None:
            self.on_confirmed(sent_ms, answer.left_ms, answer.capped)
        return answer.left_ms / 1_000

    def take_in(self, error: Error) -> None:
        """Learn from a refusal: capped is held to its deadline, every other loss is final."""
        if not isinstance(error, LeaseLost):
            return
        if error.reason is LostReason.CAPPED and error.detail.get("left_ms"):
            with _guard():
                self.trust.cap()
            return
        self.lose(error)

    def miss(self) -> None:
        """A renewal had no answer."""
        with _guard():
            self.trust.miss(self.clock.fast_ms())

    def end(self, how: End) -> None:
        """This process ended the lease by a verb of its own."""
        end_all((self,), how)

    def untell(self, tell: Callable[[LeaseLost], None]) -> None:
        """Tell this one of a loss no more."""
        with contextlib.suppress(ValueError):  # nobody is told any more
            self.on_lost.remove(tell)

    def lose(self, error: LeaseLost, *, by_clock: bool = False) -> bool:
        """The lease is lost: remember why, and tell everybody once. True the first time only."""
        with _guard():
            if self.ended is not None or self.is_lost:
                return False
            self.trust.lose(error.reason)
            self.cause = error
            self.is_lost = True
            # At its cap it is not let go early: until then nobody else may begin.
            if by_clock and error.reason is not LostReason.CAPPED:
                self._owes = GivenBack.MAX_SILENCE if self.is_silent else GivenBack.HOLDER_EXPIRED
            if self._event is not None:
                self._event.set()
            told = list(self.on_lost)
        # Outside the lock: who is told may wait for a thread that looks at this lease.
        for tell in told:
            tell(error)
        return True

    def lose_by_clock(self) -> bool:
        """Has the deadline passed on the holder's own clock; if so it is lost now. True the first time only."""
        with _guard():
            if self.is_lost or self.ended is not None or self.status is not Status.LOST:
                return False
            assert self.trust.lost is not None, "status says LOST"
            error = self.lost_error(self.trust.lost)
        return self.lose(error, by_clock=True)

    def take_release(self) -> GivenBack | None:
        """What the one release is to say that a holder owes who let go by its own clock; None once it was taken."""
        with _guard():
            owed, self._owes = self._owes, None
            return owed

    def require(self, need: Any = 0) -> None:
        """Raise `LeaseLost` unless the lease is trusted for `need` more seconds."""
        need_ms = border.duration_ms("need", need)
        self.lose_by_clock()
        if self.cause is not None:
            raise self.cause
        if self.ended is not None:
            raise self.lost_error(BY_END.get(self.ended, CLOSED))
        trusted_ms = self.trust.trusted_ms(self.clock.fast_ms())
        if trusted_ms < need_ms:
            raise LeaseLost(
                f"task {self.grant.handle.task_id}: {need_ms} ms are needed, the lease is trusted for "
                f"{trusted_ms:.0f} more; renew it first, or claim with a longer ttl",
                reason=LostReason.EXPIRED, token=self.grant.handle.token, current_token=None,
                trusted_ms=trusted_ms, task_id=self.grant.handle.task_id,
            )  # fmt: skip

    def is_doubtful(self) -> bool:
        """Look at both clocks; doubtful means that a renewal must be confirmed before the next step."""
        with _guard():
            self.trust.observe(self.clock.fast_ms(), self.clock.wall_ms(), self.clock.suspended_ms())
            return self.status is Status.DOUBTFUL

    def patience_ms(self) -> int:
        """How long an answer may take to be of any use: until the lease is not trusted any more."""
        return max(1, int(self.trust.deadline_ms - self.clock.fast_ms()))

    def lost_error(self, reason: LostReason) -> LeaseLost:
        """Lost, by what this process itself knows."""
        handle, holder = self.grant.handle, self.grant.holder
        why = {
            LostReason.CLOSED: f"it was ended by this process ({self.ended})",
            LostReason.RELEASED: "it was released",
            LostReason.EXPIRED: "its deadline passed on this machine's own clock, and no renewal was confirmed",
            LostReason.CAPPED: "it reached the longest time it may be held",
        }.get(reason, str(reason))
        if reason is LostReason.EXPIRED and self.is_silent and self.silence is not None:
            why = f"nothing moved under it for {self.silence.most_ms} ms (max_silence), so it was not renewed"
        return LeaseLost(
            f"task {handle.task_id}: the lease of {holder} (token {handle.token}) is not trusted any more: {why}. "
            f"Stop this work and discard it → relet show {handle.task_id}",
            reason=reason, token=handle.token, current_token=None, task_id=handle.task_id, holder=holder,
        )  # fmt: skip

    def _wall(self, fast_ms: float) -> datetime:
        ago_ms = self.clock.fast_ms() - fast_ms
        return datetime.fromtimestamp((self.clock.wall_ms() - ago_ms) / 1_000, UTC)


def confirm_all(beliefs: Sequence[Belief], answers: Sequence[Renewed | Error], sent_ms: float) -> None:
    """Take in the store's answers to many renewals; refusals are not raised."""
    refused: list[tuple[Belief, Error]] = []
    with _guard():
        for belief, answer in zip(beliefs, answers, strict=True):
            if isinstance(answer, Renewed):
                belief.trust.confirm(sent_ms=sent_ms, left_ms=answer.left_ms, capped=answer.capped)
            else:
                refused.append((belief, answer))
    # Outside the lock: who is told of a loss may wait for a thread that looks at this lease.
    for belief, error in refused:
        belief.take_in(error)


def end_all(beliefs: Iterable[Belief], how: End) -> None:
    """This process ended these leases by a verb of its own."""
    reason = BY_END.get(how, CLOSED)
    with _guard():
        for belief in beliefs:
            belief.ended = how
            belief.trust.lose(reason)
            # A lease that was ended is lost to nobody; and whoever would have been told may be freed at once.
            belief.on_lost.clear()


def lose_all_by_clock(beliefs: Iterable[Belief], clock: HolderClock) -> None:
    """As `lose_by_clock` of each, with one look at the clock that they share."""
    now_ms = clock.fast_ms()
    for belief in beliefs:
        # The one that another process has news of is asked itself, and so is whoever is not plainly in time.
        if belief.news is not None or now_ms >= belief.trust.deadline_ms:
            belief.lose_by_clock()


def seen_now(clock: HolderClock) -> Seen:
    """The clocks, as they stand."""
    return clock.fast_ms(), clock.wall_ms(), clock.suspended_ms()


class _Guard:
    """One lock for all beliefs of a process: what it protects is a handful of assignments."""

    lock = threading.RLock()


def _guard() -> contextlib.AbstractContextManager[bool]:
    return _Guard.lock


def _after_fork() -> None:
    # A thread that is not there in the child may have held the old one.
    _Guard.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
