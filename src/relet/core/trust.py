"""What a holder may believe: a pure machine that says when to renew and when to stop trusting a lease.

Authority slow, holder fast: the deadline is measured from *before* the request left, on a clock that counts
suspended time, minus a margin; so it passes here before the store may give the task away. All instants are
milliseconds of that one clock, handed in by the caller.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import Final

from relet.core import limits
from relet.core.errors import Invalid
from relet.core.model import LostReason

TTLS_KEPT: Final = 64
"""A program has few, and asks about them with each lease."""


class Status(StrEnum):
    """HELD; DOUBTFUL: a renewal failed or the clocks diverged, look before the next step; LOST, for good."""

    HELD = "held"
    DOUBTFUL = "doubtful"
    LOST = "lost"


@lru_cache(maxsize=TTLS_KEPT)
def margin_ms(ttl_ms: float, skew_ms: float = 0) -> float:
    """How much earlier than the store the holder lets go."""
    return min(max(limits.MARGIN_MS_MIN, ttl_ms * limits.MARGIN_SHARE), ttl_ms * limits.MARGIN_SHARE_MAX) + skew_ms


@lru_cache(maxsize=TTLS_KEPT)
def interval_ms(ttl_ms: int, asked_ms: int | None = None) -> int:
    """The time between heartbeats: a third of the ttl, or what was asked for. Over half the ttl is refused."""
    if asked_ms is None:
        return max(1, int(ttl_ms * limits.RENEW_SHARE))
    if asked_ms > ttl_ms * limits.RENEW_SHARE_MAX or asked_ms <= 0:
        raise Invalid(
            f"heartbeat interval: {asked_ms} ms does not fit a ttl of {ttl_ms} ms; one lost beat would lose the "
            f"lease. Give at most half the ttl ({ttl_ms // 2} ms), or a longer ttl",
            field="interval",
        )
    return asked_ms


class Trust:
    """The belief in one lease."""

    __slots__ = (
        "_doubtful",
        "_drift_ms",
        "_margin_ms",
        "_retry_ms",
        "_suspended_ms",
        "capped",
        "deadline_ms",
        "interval_ms",
        "lost",
        "renewed_ms",
        "skew_ms",
        "ttl_ms",
        "until_ms",
    )  # fmt: skip

    RETRY_SHARE: Final = 1 / 12
    """After a failed beat: the next try after this share of the ttl."""

    def __init__(
        self, *, sent_ms: float, left_ms: float, ttl_ms: int, skew_ms: float = 0, every_ms: int | None = None
    ) -> None:
        self.ttl_ms, self.skew_ms = ttl_ms, skew_ms
        self.interval_ms = interval_ms(ttl_ms, every_ms)
        self.lost: LostReason | None = None
        self.capped = False
        self.renewed_ms = sent_ms
        self.until_ms = sent_ms + left_ms
        self._margin_ms = margin_ms(ttl_ms, skew_ms)
        self.deadline_ms = self.until_ms - margin_ms(max(ttl_ms, left_ms), skew_ms)
        self._doubtful = False
        self._drift_ms: float | None = None
        self._suspended_ms = 0.0
        self._retry_ms: float | None = None

    def confirm(self, *, sent_ms: float, left_ms: float, capped: bool = False) -> None:
        """The store said so many milliseconds are left, in answer to a request sent at `sent_ms`."""
        if self.lost is not None:
            return
        # Compared by hand: one process may keep ten thousand leases, and hears of all of them at once.
        if (until_ms := sent_ms + left_ms) > self.until_ms:
            self.until_ms = until_ms
        # By what is left where that is more than the ttl: clocks drift apart for as long as the lease lasts.
        margin = self._margin_ms if left_ms <= self.ttl_ms else margin_ms(left_ms, self.skew_ms)
        self.deadline_ms = self.until_ms - margin
        if sent_ms > self.renewed_ms:  # noqa: PLR1730 - max() costs as much as all the rest
            self.renewed_ms = sent_ms
        self.capped = self.capped or capped
        self._doubtful, self._retry_ms = False, None

    def miss(self, now_ms: float) -> None:
        """A renewal had no answer: it counts as not renewed, the deadline stays, and doubt begins."""
        self._doubtful = True
        self._retry_ms = now_ms + self.ttl_ms * self.RETRY_SHARE

    def observe(self, now_ms: float, wall_ms: float, suspended_ms: float = 0) -> None:
        """Compare the clocks: a jump between them means a step, a paused machine, or one that was suspended."""
        drift_ms = wall_ms - now_ms
        if self._drift_ms is not None and (
            abs(drift_ms - self._drift_ms) > limits.DIVERGENCE_MS_MAX
            or suspended_ms - self._suspended_ms > limits.DIVERGENCE_MS_MAX
        ):
            self._doubtful, self._retry_ms = True, now_ms
        self._drift_ms, self._suspended_ms = drift_ms, suspended_ms

    def cap(self) -> None:
        """The store will not renew any more (`max_hold`); the lease is held to its deadline."""
        self.capped = True
        self._doubtful, self._retry_ms = False, None

    def lose(self, reason: LostReason) -> None:
        """The store said that it is lost. Final; the first reason stands."""
        if self.lost is None:
            self.lost = reason

    def status(self, now_ms: float) -> Status:
        """What may be believed at this instant; a passed deadline is remembered."""
        if self.lost is None and now_ms >= self.deadline_ms:
            self.lost = LostReason.CAPPED if self.capped else LostReason.EXPIRED
        if self.lost is not None:
            return Status.LOST
        return Status.DOUBTFUL if self._doubtful else Status.HELD

    def trusted_ms(self, now_ms: float) -> float:
        """How long the lease may still be trusted; 0 once it may not."""
        return 0 if self.status(now_ms) is Status.LOST else self.deadline_ms - now_ms

    def renew_at_ms(self) -> float | None:
        """When the next beat is due; None when there is nothing to renew any more."""
        if self.lost is not None or self.capped:
            return None
        due_ms = self.renewed_ms + self.interval_ms
        return due_ms if self._retry_ms is None else self._retry_ms

    def wake_at_ms(self) -> float | None:
        """When its keeper must look again: at the next beat or at the deadline, whichever comes first."""
        if self.lost is not None:
            return None
        if self.capped:
            return self.deadline_ms
        due_ms = self.renewed_ms + self.interval_ms if self._retry_ms is None else self._retry_ms
        return min(self.deadline_ms, due_ms)
