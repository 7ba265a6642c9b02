"""grant: one new lease for one ready task. Shared by claim and by complete-and-claim-next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from relet.core import limits
from relet.core.errors import Unavailable
from relet.core.fields import Attempts, DurationMs, MaxHoldMs, SpanMs, TtlMs
from relet.core.model import Cause, End, Grant, Handle, Instants, TakenOver
from relet.core.payload import decode
from relet.core.rules.settle import lapsed_by
from relet.core.states import move
from relet.core.tx import LeaseRow, QueueRow, TaskRow, Tx
from relet.core.work import Saving


class Knobs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a claimer or a handler sets for its tasks; None leaves it to the queue, then to the default."""

    ttl_ms: TtlMs | None = None
    timeout_ms: SpanMs | None = None
    max_hold_ms: MaxHoldMs | None = None
    max_attempts: Attempts | None = None
    max_losses: Attempts | None = None
    backoff_base_ms: DurationMs | None = None
    backoff_cap_ms: DurationMs | None = None


KNOBS = Knobs.__struct_fields__
NOTHING_SET = Knobs()
Levels = Sequence[Knobs | QueueRow | None]
"""Where a knob is looked for after the task itself and the claim, in this order: handler, queue."""


class Terms(NamedTuple):
    """What a lease is held on, in the order of its fields."""

    ttl_ms: int
    timeout_ms: int | None
    max_hold_ms: int | None
    max_attempts: int
    max_losses: int
    backoff_base_ms: int
    backoff_cap_ms: int


async def grant(
    tx: Tx, task: TaskRow, at: Instants, holder: str, ttl_ms: int | None, levels: Levels,
    *, call_id: str | None, request_id: str | None, request_digest: str | None,
) -> Grant:  # fmt: skip
    """Give the task to the holder under a token larger than every token before it."""
    token = await tx.next_token()
    before = await _last_lease(tx, task.token) if task.token else None
    assert token > task.token and (before is None or before.ended is not None), "one lease at a time, tokens grow"
    lease = new_lease(task, at, token, holder, terms_of(task, ttl_ms, levels), call_id)
    if request_id is not None:
        lease.request_id, lease.request_digest = request_id, request_digest
    if before is not None and before.ended is End.LAPSED:
        lease.took_over = before.token
    await tx.insert_lease(lease)
    is_again = task.token > 0
    task.state, task.token, task.updated_wall_ms = move(task.state, Cause.CLAIMED), token, at.wall_ms
    detail: dict[str, Any] = {"ttl_ms": lease.ttl_ms, "attempt": task.attempt}
    if before is not None and before.ended is End.LAPSED:
        detail["took_over"] = {"token": before.token, "holder": before.holder, "reason": str(lapsed_by(before))}
    saving = await tx.find_saving(task.seq) if is_again else None
    if saving is not None and saving.steps:
        detail["saved"] = msgspec.to_builtins(saving)
    await tx.add_event(task, Cause.CLAIMED, at, token, holder, **detail)
    if task.delayed:
        task.delayed, task.due_ms, task.due_wall_ms = False, None, None
        await tx.update_task(task)
    else:
        await tx.take_task(task)
    return await granted(tx, lease, task, at, before, saving)


async def _last_lease(tx: Tx, token: int) -> LeaseRow | None:
    """None also for one that is damaged: what would be told of it keeps nobody from the work."""
    try:
        return await tx.find_lease(token)
    except Unavailable:
        return None


def new_lease(task: TaskRow, at: Instants, token: int, holder: str, terms: Terms, call_id: str | None) -> LeaseRow:
    """The lease of a grant, as it begins."""
    now_ms, wall_ms = at
    ttl_ms, _, max_hold_ms, *_ = terms
    expires_ms = now_ms + (ttl_ms if max_hold_ms is None else min(ttl_ms, max_hold_ms))
    # In the order of the fields: thirty of them by name cost more than the statement that writes the row.
    return LeaseRow(
        token, task.seq, task.tenant, holder, task.attempt, *terms, task.exclusive,
        now_ms, wall_ms, now_ms, wall_ms, expires_ms, expires_ms, call_id=call_id,
    )  # fmt: skip


async def granted(
    tx: Tx, lease: LeaseRow, task: TaskRow, at: Instants, before: LeaseRow | None = None, saving: Saving | None = None
) -> Grant:
    """The grant of a lease as its holder sees it, with the time that is left now."""
    if before is None and lease.took_over is not None:
        before = await _last_lease(tx, lease.took_over)
    took_over = None
    if before is not None and before.ended is End.LAPSED:
        took_over = TakenOver(token=before.token, holder=before.holder, reason=lapsed_by(before))
    return told(tx, lease, task, at, await tx.find_input(task.seq), took_over, saving)


def are_readable(labels: str | None) -> bool:
    """Can they be told to a holder: a task that is damaged is left where it is, and others are granted beside it."""
    if labels:
        try:
            decode(labels)
        except Unavailable:
            return False
    return True


def told(
    tx: Tx, lease: LeaseRow, task: TaskRow, at: Instants, payload: str, took_over: TakenOver | None = None,
    saving: Saving | None = None,
) -> Grant:  # fmt: skip
    """As `granted`, where everything is known."""
    return Grant(
        handle=Handle(task.id, lease.token, tx.secret(lease.token, task.id)), queue=task.queue, kind=task.kind,
        holder=lease.holder, attempt=lease.attempt, input=msgspec.Raw(payload.encode()),
        labels=decode(task.labels) if task.labels else {},
        ttl_ms=lease.ttl_ms, left_ms=max(0, lease.expires_ms - at.now_ms), held_ms=at.now_ms - lease.claimed_ms,
        timeout_ms=lease.timeout_ms,
        deadline_left_ms=None if task.deadline_wall_ms is None else task.deadline_wall_ms - at.wall_ms,
        progress=task.progress, took_over=took_over, saving=saving,
    )  # fmt: skip


def terms_of(task: TaskRow, ttl_ms: int | None, levels: Levels) -> Terms:
    """Each from the first that sets it: submit, then claimer or handler, then queue; the default where none does."""
    knobs = _resolved(task, ttl_ms, levels)
    return Terms(
        knobs.ttl_ms or limits.TTL_MS, knobs.timeout_ms, knobs.max_hold_ms,
        knobs.max_attempts or limits.MAX_ATTEMPTS, knobs.max_losses or limits.MAX_LOSSES,
        limits.BACKOFF_BASE_MS if knobs.backoff_base_ms is None else knobs.backoff_base_ms,
        limits.BACKOFF_CAP_MS if knobs.backoff_cap_ms is None else knobs.backoff_cap_ms,
    )  # fmt: skip


def _resolved(task: TaskRow, ttl_ms: int | None, levels: Levels) -> Knobs:
    set_by = [level for level in levels if level is not None and level != NOTHING_SET]
    if not set_by:
        return Knobs(
            ttl_ms=task.ttl_ms or ttl_ms, timeout_ms=task.timeout_ms, max_hold_ms=task.max_hold_ms,
            max_attempts=task.max_attempts, max_losses=task.max_losses,
        )  # fmt: skip
    own: dict[str, int | None] = {name: getattr(task, name, None) for name in KNOBS}
    own["ttl_ms"] = task.ttl_ms or ttl_ms
    for level in set_by:
        for name in KNOBS:
            if own[name] is None:
                own[name] = getattr(level, name, None)
    return Knobs(**own)
