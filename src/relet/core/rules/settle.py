"""Where a task goes when an attempt ends: back to its queue, later, or nowhere. Shared by fail, lapse, release."""

from __future__ import annotations

from relet.core import limits
from relet.core.model import Cause, End, FailReason, Instants, LostReason, State
from relet.core.states import move
from relet.core.tx import LeaseRow, TaskRow


def fraction(seed: int) -> float:
    """A number in [0, 1) that looks random and is the same for the same seed (Knuth's multiplicative hash)."""
    return (seed * 2_654_435_761 % (1 << 32)) / (1 << 32)


def backoff_ms(n: int, base_ms: int, cap_ms: int) -> int:
    """The wait before the n-th retry: doubled each time, capped before it is computed, hence never too large."""
    if base_ms <= 0:
        return 0
    return min(cap_ms, base_ms << min(n - 1, 40))


def jittered(delay_ms: int, seed: int) -> int:
    """A delay with up to a fifth added; never less than what was asked for."""
    return delay_ms + int(delay_ms * limits.JITTER * fraction(seed))


def schedule(task: TaskRow, at: Instants, delay_ms: int) -> None:
    """Make a ready task due in `delay_ms`: short delays in store time, long ones in wall time."""
    task.delayed = delay_ms > 0
    task.due_ms = task.due_wall_ms = None
    if not task.delayed:
        return
    if delay_ms <= limits.STORE_TIME_DELAY_MS_MAX:
        task.due_ms = at.now_ms + delay_ms
    else:
        task.due_wall_ms = at.wall_ms + delay_ms


def schedule_wall(task: TaskRow, due_wall_ms: int | None) -> None:
    """Make a task due at a wall time, or at once; a waiting one is due when its question runs out of time."""
    task.delayed, task.due_ms, task.due_wall_ms = due_wall_ms is not None, None, due_wall_ms


def verdict(task: TaskRow, lease: LeaseRow, at: Instants) -> FailReason | None:
    """Why a task whose attempt just ended badly must not be tried again; None when it may."""
    if task.failures + task.losses >= lease.max_attempts:
        return FailReason.ATTEMPTS
    if task.streak >= lease.max_losses:
        return FailReason.LOSSES
    if overdue(task, at):
        return FailReason.DEADLINE
    return None


def overdue(task: TaskRow, at: Instants) -> bool:
    """Has the task's deadline come."""
    return task.deadline_wall_ms is not None and task.deadline_wall_ms <= at.wall_ms


def bury(task: TaskRow, reason: FailReason) -> None:
    """Make it a dead letter: kept, and requeueable by a person."""
    task.state = move(task.state, Cause.FAILED)
    task.reason = str(reason)
    task.delayed = False
    task.due_ms = task.due_wall_ms = None


def call_off(task: TaskRow) -> None:
    """Carry out a cancel, whether asked for earlier or just now."""
    task.state = move(task.state, Cause.CANCELLED)
    task.reason = task.cancel_reason
    task.cancel_reason = None
    task.waiting_for = task.wait_seq = None
    task.delayed = False
    task.due_ms = task.due_wall_ms = None


def is_finished(task: TaskRow) -> bool:
    """Done, failed or cancelled: nothing more happens by itself."""
    return task.state in (State.DONE, State.FAILED, State.CANCELLED)


def is_capped(lease: LeaseRow) -> bool:
    """Has the lease reached the longest time that it may be held."""
    return lease.max_hold_ms is not None and lease.expires_ms >= lease.claimed_ms + lease.max_hold_ms


def has_let_go(lease: LeaseRow) -> bool:
    """Did its holder tell the store itself that it had lapsed: then the answer is kept, for a repeated request."""
    return lease.ended is End.LAPSED and lease.end_digest is not None


def lapsed_by(lease: LeaseRow) -> LostReason:
    """Why a lease lapsed. Before it expired only its holder ends one so: by its proven death, or by letting go."""
    early = lease.ended is End.LAPSED and lease.ended_ms is not None and lease.ended_ms < lease.expires_ms
    if early and not has_let_go(lease):
        return LostReason.HOLDER_DIED
    return LostReason.CAPPED if is_capped(lease) else LostReason.EXPIRED
