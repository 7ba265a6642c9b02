"""The nouns, as callers see them: tasks, grants, events; frozen, typed, times aware and in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from relet.core.fields import Secret, TaskId, Token
from relet.core.work import Saving


class State(StrEnum):
    """Where a task stands. `leased` is not ownership: only leased *and* not yet expired is."""

    READY = "ready"
    LEASED = "leased"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class End(StrEnum):
    """How a lease ended: by a verb of its holder, or by silence."""

    COMPLETED = "completed"
    FAILED = "failed"
    PARKED = "parked"
    RELEASED = "released"
    LAPSED = "lapsed"


class LostReason(StrEnum):
    """Why a lease is lost, in the order in which they are looked for."""

    CLOSED = "closed"
    RELEASED = "released"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"
    CAPPED = "capped"
    EXPIRED = "expired"
    HOLDER_DIED = "holder_died"


class GivenBack(StrEnum):
    """Why a lease was released, where it was not its holder's work that decided so."""

    RELEASED = "released"
    WORKER_STOPPED = "worker_stopped"
    HOLDER_EXPIRED = "holder_expired"
    """By the clock of its holder, which lets go before the store does. It counts as the lapse that it is."""
    MAX_SILENCE = "max_silence"
    """By the clock of its holder too, which no longer renewed it since nothing moved under it."""


class LapsedBy(StrEnum):
    """What made a lease lapse, where it was not the store's clock alone that found it expired."""

    HOLDER_EXPIRED = "holder_expired"
    MAX_SILENCE = "max_silence"
    RESTORE = "restore"
    """The store went on from a backup, in which the lease was held."""


class Cause(StrEnum):
    """What moved a task; also the kind of its event in the history."""

    SUBMITTED = "submitted"
    CLAIMED = "claimed"
    SAVED = "saved"
    STEPPED = "stepped"
    ATTACHED = "attached"
    EFFECT_STARTED = "effect_started"
    EFFECT_ENDED = "effect_ended"
    COMPLETED = "completed"
    RETRIED = "retried"
    FAILED = "failed"
    RELEASED = "released"
    LAPSED = "lapsed"
    PARKED = "parked"
    ANSWERED = "answered"
    SIGNALLED = "signalled"
    CANCEL_REQUESTED = "cancel_requested"
    CANCELLED = "cancelled"
    REQUEUED = "requeued"
    OUTAGE = "outage"


class FailReason(StrEnum):
    """Why a task failed for good."""

    PERMANENT = "permanent"
    ATTEMPTS = "attempts"
    LOSSES = "losses"
    DEADLINE = "deadline"


class Instants(NamedTuple):
    """The two readings that a lock hands out; values of one are never compared with the other.

    `now_ms` is store time (leases, backoff, short delays); `wall_ms` is UTC (schedules and all dates shown).
    """

    now_ms: int
    wall_ms: int


class Handle(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What proves a lease: the task's id, the token, and a secret that only the store can make."""

    task_id: TaskId
    token: Token
    secret: Secret


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of work in a queue, as it stood when it was read."""

    id: str
    queue: str
    kind: str
    tenant: str
    state: State
    live: bool
    """A lease is held and has not expired."""
    attempt: int
    failures: int
    losses: int
    token: int | None
    holder: str | None
    input: Any
    result: Any
    error: str | None
    code: str | None
    reason: str | None
    labels: dict[str, str]
    priority: int
    exclusive: str | None
    share: str | None
    progress: str | None
    waiting_for: str | None
    cancel_requested: bool
    created: bool
    """Did this very call make the task."""
    created_at: datetime
    updated_at: datetime
    due_at: datetime | None
    deadline: datetime | None
    claimed_at: datetime | None
    expires_at: datetime | None
    renew_by: datetime | None
    last_heartbeat: datetime | None


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """One lease, as granted: everything its holder needs; durations count from the store's answer."""

    handle: Handle
    queue: str
    kind: str
    holder: str
    attempt: int
    input: msgspec.Raw
    labels: dict[str, str]
    ttl_ms: int
    left_ms: int
    held_ms: int
    """How long this lease has been held already; 0 unless a request was repeated."""
    timeout_ms: int | None
    deadline_left_ms: int | None
    progress: str | None
    took_over: TakenOver | None
    saving: Saving | None = None
    """What the steps kept by earlier holders took: that much need not be done again."""


class TakenOver(msgspec.Struct, frozen=True, kw_only=True):
    """The lease before this one, when it ended by lapse."""

    token: int
    holder: str
    reason: LostReason


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One change of one task, for ever in its history; `seq` grows over the whole store."""

    seq: int
    task_id: str | None
    queue: str | None
    kind: Cause
    state: State | None
    token: int | None
    holder: str | None
    at: datetime
    detail: dict[str, Any]


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """A refused write under a lease: what was tried, by whom, why it was refused, how late it came."""

    seq: int
    task_id: str
    verb: str
    holder: str
    token: int
    current_token: int | None
    reason: LostReason
    late_ms: int | None
    at: datetime
    result: Any
    """What a refused `complete` would have stored; kept for the next holder to read."""


def date(wall_ms: int) -> datetime:
    """Wall milliseconds as an aware UTC time."""
    return datetime.fromtimestamp(wall_ms / 1_000, UTC)


def maybe_date(wall_ms: int | None) -> datetime | None:
    """As `date`, passing None through."""
    return None if wall_ms is None else date(wall_ms)
