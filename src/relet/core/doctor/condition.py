"""How the work in a store stands, as far as somebody may have to act on it; every list is bounded."""

from __future__ import annotations

import msgspec


class Lapsed(msgspec.Struct, frozen=True, kw_only=True):
    """Leases that expired more than half a ttl ago and that nobody has taken back; the oldest of them."""

    count: int
    task_id: str
    queue: str
    holder: str
    token: int
    ttl_ms: int
    expired_ms_ago: int


class Quiet(msgspec.Struct, frozen=True, kw_only=True):
    """Live leases that missed two heartbeats; the one with the least share of its ttl left."""

    count: int
    task_id: str
    queue: str
    holder: str
    token: int
    ttl_ms: int
    left_ms: int


class QueueKnobs(msgspec.Struct, frozen=True, kw_only=True):
    """A queue, and what is set for it."""

    name: str
    paused: bool
    ttl_ms: int | None
    max_hold_ms: int | None
    held_back: str | None = None
    """What keeps all of its ready tasks from being granted now; null where nothing does, or where none are ready."""
    apart_ms: int = 0
    """Between two grants at its full rate."""


class ReadyKind(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks of one kind among those that a claim of the queue would look at first; the one that is ready longest.

    None of them is held back by a key, or by the limit of its share.
    """

    queue: str
    kind: str
    count: int
    task_id: str
    ready_wall_ms: int
    """Since when it is ready, or due."""
    priority: int
    seq: int
    share: str
    in_line: bool = True
    """Was it ready all that time, for any claim that came to its place in the line of its share."""


class RecentClaims(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the newest leases of one kind, within a week."""

    queue: str
    kind: str
    count: int
    lapsed: int
    last_wall_ms: int
    """When the newest one was granted."""
    last_ttl_ms: int
    last_priority: int
    last_seq: int
    last_share: str


class Repeated(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks that are claimed again and again: given back at once each time, and nothing kept; the worst of them."""

    count: int
    task_id: str
    queue: str
    kind: str
    leases: int
    """How many of the newest leases it has had so."""
    span_ms: int
    """Since the first of those."""


class Aged(msgspec.Struct, frozen=True, kw_only=True):
    """Things of one sort that have waited for too long; the one that waited longest."""

    count: int
    id: str
    """Its own: an effect's, or the name of a question."""
    task_id: str
    age_ms: int


class DeadLetters(msgspec.Struct, frozen=True, kw_only=True):
    """Failed tasks of one queue with one code, among the newest; and the newest of them."""

    queue: str
    code: str | None
    count: int
    task_id: str


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one tenant, at one instant."""

    tenant: str
    wall_ms: int
    lapsed: Lapsed | None
    quiet: Quiet | None
    queues: list[QueueKnobs]
    ready: list[ReadyKind]
    recent: list[RecentClaims]
    busy: list[tuple[str, str]]
    """Queues and kinds of which a lease is live."""
    repeated: Repeated | None
    unknown_effects: Aged | None
    stalled: Aged | None
    """Questions without a time limit that nobody answers."""
    unanswered: Aged | None
    """Waits whose time is over, and which nobody has ended."""
    dead: list[DeadLetters]
