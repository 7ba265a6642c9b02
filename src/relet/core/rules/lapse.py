"""lapse: write down that a lease ended by silence. Shared by every rule that may observe one."""

from __future__ import annotations

from relet.core import limits
from relet.core.errors import Unavailable
from relet.core.model import Cause, End, FailReason, Instants, LapsedBy, LostReason
from relet.core.rules.effect import doubt_all
from relet.core.rules.settle import backoff_ms, bury, call_off, fraction, jittered, lapsed_by, schedule, verdict
from relet.core.states import move
from relet.core.tx import LeaseRow, TaskRow, Tx


async def lapse(
    tx: Tx, lease: LeaseRow, task: TaskRow, at: Instants, *, died: bool = False, by: LapsedBy | None = None
) -> None:
    """End an expired lease, or one whose holder is proven to have `died`, and decide what its task does next."""
    assert lease.ended is None and (died or lease.expires_ms <= at.now_ms), "only an open, expired lease lapses"
    await count_lapse(tx, lease, task, at, by)
    await tx.end_lease(lease)


async def count_lapse(tx: Tx, lease: LeaseRow, task: TaskRow, at: Instants, by: LapsedBy | None = None) -> int:
    """Decide what the task of a lease that lapses now does next, and in how many ms; the lease is not written yet.

    The first loss since the last save makes the task ready at once, later ones wait for the backoff; a crowd of
    lapses within one second is spread. A task whose cancel was asked for is cancelled, and that is no loss.
    """
    lease.ended, lease.ended_ms, lease.ended_wall_ms = End.LAPSED, at.now_ms, at.wall_ms
    if task.unsettled:
        await doubt_all(tx, task, lease.token, at)
    if task.cancel_reason is not None:
        call_off(task)
        await _note(tx, lease, task, at, Cause.CANCELLED, by=by, reason=task.reason)
        return 0
    if not lease.excused:
        task.losses, task.streak, task.attempt = task.losses + 1, task.streak + 1, task.attempt + 1
    cause = _cause(lease, at, by)
    task.error = f"the lease of {lease.holder} lapsed: {cause}"
    task.code = "RELET-LAPSED"
    if (reason := verdict(task, lease, at)) is not None:
        bury(task, reason)
        task.error = _epitaph(task, lease, reason, cause)
        await _note(tx, lease, task, at, Cause.FAILED, by=by, reason=str(reason), losses=task.losses)
        return 0
    task.state = move(task.state, Cause.LAPSED)
    delay_ms = await _delay_ms(tx, lease, task, at)
    schedule(task, at, delay_ms)
    await _note(tx, lease, task, at, Cause.LAPSED, by=by, losses=task.losses, delay_ms=delay_ms)
    return delay_ms


async def close_lapsed(tx: Tx, most: int = limits.LAPSES_PER_BATCH, by: LapsedBy | None = None) -> tuple[int, bool]:
    """Close up to `most` lapsed leases; answers how many, and whether more may be waiting.

    Leases that were renewed since they were last looked at are put off to their new expiry.
    """
    leases, at = await tx.lock_to_check(most)
    if not leases:
        return 0, False
    alive = [lease for lease in leases if at.now_ms < lease.expires_ms]
    for lease in alive:
        lease.check_ms = lease.expires_ms
    if alive:
        await tx.postpone_checks(alive)
    closed = 0
    for lease in leases:
        if lease.expires_ms <= at.now_ms:
            closed += await _close(tx, lease, at, by)
    return closed, len(leases) == most


async def _close(tx: Tx, lease: LeaseRow, at: Instants, by: LapsedBy | None) -> bool:
    """One whose task is damaged is put off, so that it keeps nobody from what comes after it."""
    try:
        task = await tx.lock_task_of(lease.task_seq)
    except Unavailable:
        lease.check_ms = at.now_ms + limits.TTL_MS
        await tx.postpone_checks([lease])
        return False
    await lapse(tx, lease, task, at, by=by)
    return True


async def close_all_lapsed(tx: Tx) -> None:
    """Close lapsed leases batch by batch, as many as one claim may, for one that is about to count what is held."""
    for _ in range(limits.LAPSE_BATCHES_PER_CLAIM):
        if not (await close_lapsed(tx))[1]:
            break


async def close_overdue(tx: Tx, most: int = limits.LAPSES_PER_BATCH) -> tuple[int, bool]:
    """Fail up to `most` ready tasks whose deadline has come; answers how many, and whether more may be waiting."""
    tasks, at = await tx.lock_overdue(most)
    for task in tasks:
        await miss_deadline(tx, task, at)
    return len(tasks), len(tasks) == most


async def miss_deadline(tx: Tx, task: TaskRow, at: Instants) -> None:
    """Fail a ready task whose deadline has come; nobody holds it."""
    bury(task, FailReason.DEADLINE)
    task.error, task.code = "its deadline passed before it was claimed", "RELET-DEADLINE"
    task.updated_wall_ms = at.wall_ms
    await tx.update_task(task)
    await tx.add_event(task, Cause.FAILED, at, None, None, reason=str(FailReason.DEADLINE))


async def _delay_ms(tx: Tx, lease: LeaseRow, task: TaskRow, at: Instants) -> int:
    delay_ms = 0
    if task.streak > 1:
        delay_ms = jittered(backoff_ms(task.streak - 1, lease.backoff_base_ms, lease.backoff_cap_ms), lease.token)
    if await tx.count_lapses(at, 1) > limits.LAPSES_PER_SECOND:
        window_ms = min(lease.ttl_ms, limits.LAPSE_SPREAD_MS_MAX)
        # Those before the crowd come back at once, so the first second of the window is taken.
        first_ms = max(1, min(limits.SECOND_MS, window_ms // 2))
        # Upon the backoff, not instead of it: of those that lapse again, the first come back in that very second.
        delay_ms += first_ms + int((window_ms - first_ms) * fraction(lease.token))
    return delay_ms


async def _note(
    tx: Tx, lease: LeaseRow, task: TaskRow, at: Instants, cause: Cause, *, by: LapsedBy | None, **detail: object
) -> None:
    task.updated_wall_ms = at.wall_ms
    await tx.add_event(
        task, cause, at, lease.token, lease.holder,
        why=str(lapsed_by(lease)), by=by,
        expired_ms_ago=at.now_ms - lease.expires_ms if lease.expires_ms <= at.now_ms else None,
        silent_ms=at.now_ms - lease.beat_ms, **detail,
    )  # fmt: skip
    await tx.update_task(task)


def _cause(lease: LeaseRow, at: Instants, by: LapsedBy | None) -> str:
    match by:
        case LapsedBy.HOLDER_EXPIRED:
            return f"it was let go by its holder's own clock, {at.now_ms - lease.beat_ms} ms after its last heartbeat"
        case LapsedBy.MAX_SILENCE:
            return "nothing moved under it for as long as its handler allows (max_silence), so it was not renewed"
        case LapsedBy.RESTORE:
            return "the store went on from a backup, in which it was held"
    match lapsed_by(lease):
        case LostReason.HOLDER_DIED:
            return "its process has ended"
        case LostReason.CAPPED:
            return f"it reached the longest time that it may be held, {lease.max_hold_ms} ms"
    return f"no heartbeat for its last {lease.ttl_ms} ms"


def _epitaph(task: TaskRow, lease: LeaseRow, reason: FailReason, cause: str) -> str:
    match reason:
        case FailReason.LOSSES:
            often = "once" if task.streak == 1 else f"{task.streak} times"
            return (
                f"its lease lapsed {often} without a save in between, the last one held by {lease.holder}: {cause}; "
                "look at that worker, then requeue it"
            )
        case FailReason.DEADLINE:
            return f"its deadline passed while {lease.holder} held it"
        case _:
            return (
                f"out of attempts: {task.failures} failures and {task.losses} losses, "
                f"{lease.max_attempts} allowed; the last lease was held by {lease.holder}"
            )
