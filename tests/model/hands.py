"""What the holders of a run hold, by arithmetic of their own: tokens, and the instants until which they are good."""

from dataclasses import dataclass, field
from typing import Any

TTL_MS = 10_000
EDGES_MS = sorted({0, 1, 333, TTL_MS // 2, TTL_MS - 1, TTL_MS, TTL_MS + 1, 2 * TTL_MS, 3_600_000})


@dataclass
class Hand:
    """One grant, kept for ever by whoever got it, on purpose: stale ones are used again."""

    task_id: str
    token: int
    handle: str
    ttl_ms: int
    until_ms: int
    cap_ms: int | None
    exclusive: str | None
    ask: dict[str, Any]
    """The claim that got it, with its request id."""
    ended: tuple[str, dict[str, Any], Any] | None = None
    """The verb by which its holder ended it, the arguments, and the answer."""
    told_lost: bool = False
    cancelling: bool = False

    def is_live(self, now_ms):
        """At the very instant `now == until` it is over."""
        return self.ended is None and now_ms < self.until_ms

    def may(self, verb, now_ms):
        """Must the store take this verb now."""
        if not self.is_live(now_ms):
            return False
        if self.cancelling:
            return verb in {"fail", "release"}
        return not (verb == "renew" and self.is_capped())

    def is_capped(self):
        """Nothing more can be had: it is granted for as long as it may be held."""
        return self.cap_ms is not None and self.until_ms >= self.cap_ms

    def renewed(self, now_ms, ttl_ms=None):
        """A beat was taken: the end is a ttl from now, never earlier than it was, never beyond the cap."""
        self.until_ms = max(self.until_ms, now_ms + (ttl_ms or self.ttl_ms))
        if self.cap_ms is not None:
            self.until_ms = min(self.until_ms, self.cap_ms)


@dataclass
class Hands:
    """All grants of one run."""

    all: list[Hand] = field(default_factory=list)

    def pick(self, n, now_ms):
        """One of the grants: for even numbers a live one, if there is any; the newest for 0 and 1, then older."""
        among = (self.live(now_ms) if n % 2 == 0 else None) or self.all
        return among[-1 - n // 2 % len(among)]

    def live(self, now_ms):
        return [hand for hand in self.all if hand.is_live(now_ms)]

    def newest(self, task_id):
        """The last grant of a task; None if there was none."""
        return max((hand for hand in self.all if hand.task_id == task_id), key=lambda hand: hand.token, default=None)

    def add(self, hand, now_ms):
        """A new grant: it must be larger than all before it, and nobody else may hold the task or its key."""
        assert all(hand.token > other.token for other in self.all), f"token {hand.token} is not the largest"
        for other in self.live(now_ms):
            assert other.task_id != hand.task_id, f"{hand.task_id} is held by {other.token} and {hand.token}"
            assert not hand.exclusive or other.exclusive != hand.exclusive, f"{hand.exclusive} is held twice"
        self.all.append(hand)
