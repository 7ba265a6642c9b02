"""guard: is this still your lease? Shared by every verb of a holder."""

from __future__ import annotations

import hmac
from typing import NamedTuple, assert_never

import msgspec

from relet.core import limits
from relet.core.bond import lock_of
from relet.core.errors import Conflict, Error, LeaseLost, NotFound
from relet.core.model import End, Handle, Instants, LostReason, date
from relet.core.rules.lapse import lapse
from relet.core.rules.settle import lapsed_by
from relet.core.tx import Holding, LeaseRow, TaskRow, Tx


class Ending(msgspec.Struct, frozen=True, gc=False):
    """The verb that would end the lease, with the digest of its content, for repeated requests."""

    end: End
    digest: str
    kept: str | None = None
    """A result to keep beside the rejection, should it be refused."""


class Repeat(NamedTuple):
    """The same verb with the same content ended this lease before; its answer was this."""

    answer: str


async def hold(
    tx: Tx, handle: Handle, ending: Ending | None = None, *, even_cancelled: bool = False, held: Holding | None = None
) -> Holding | Repeat | Error:
    """The lease behind a handle, locked and live; or why it is not. `held` is that lease where it is locked already.

    An expiry observed here is written down before it is told, so no later clock revives the lease.
    """
    if held is None:
        held = await tx.lock_lease(handle.token)
    if held is None or not proven(tx, handle):
        return await stranger(tx, handle)
    lease, task, at = held
    if ending is not None and lease.ended is ending.end and lease.end_digest is not None:
        if lease.end_digest == ending.digest:
            return Repeat(lease.end_answer or "null")
        return _other_content(lease, task, ending)
    reason = lost_reason(lease, task, at, even_cancelled=even_cancelled)
    if reason is None:
        if is_strange(tx, lease):
            await tx.loosen_lease(lease.token)
        return held
    if lease.ended is None and lease.expires_ms <= at.now_ms:
        await lapse(tx, lease, task, at)
    return refuse(tx, lease, task, at, reason, kept=ending.kept if ending else None)


def is_strange(tx: Tx, lease: LeaseRow) -> bool:
    """Is it bound to a lock that the asking process does not hold: whose end then proves nothing any more."""
    lock = lock_of(lease.call_id)
    return lock is not None and not tx.is_ours(lock)


def proven(tx: Tx, handle: Handle) -> bool:
    """Does the secret belong to this token of this task. The holder's name is a label and proves nothing."""
    if not 0 <= handle.token <= limits.TOKEN_MAX:
        return False
    return hmac.compare_digest(tx.secret(handle.token, handle.task_id).encode(), handle.secret.encode())


async def stranger(tx: Tx, handle: Handle) -> NotFound | Conflict | LeaseLost:
    """The answer to a handle without a lease: never granted, pruned since, or granted after the backup in use."""
    if not proven(tx, handle):
        return _never_granted(handle)
    if (pruned_ms := await tx.find_tombstone(handle.task_id)) is not None:
        return Conflict(
            f"task {handle.task_id} had finished, and was pruned on {date(pruned_ms):%Y-%m-%d}; token "
            f"{handle.token} is not valid any more. Nothing was written; stop this work and discard it",
            code="RELET-GONE", task_id=handle.task_id, token=handle.token,
        )  # fmt: skip
    # Its secret says that this store did grant it. Of another tenant it is all the same nothing here.
    return (
        await _undone(tx, handle) if await tx.is_unrecorded(handle.token, handle.task_id) else _never_granted(handle)
    )


async def _undone(tx: Tx, handle: Handle) -> LeaseLost:
    """The store went on from a time before the grant, in which every lease has lapsed."""
    task = await tx.find_task(handle.task_id)
    current = None if task is None else task.token
    passed = current is not None and current > handle.token
    return LeaseLost(
        f"task {handle.task_id}: token {handle.token} is not valid any more: the store went on from a backup made "
        f"before this lease was granted{f', and the task has passed to token {current}' if passed else ''}. "
        "Nothing was written; stop this work and discard it",
        code="RELET-RESTORED", reason=LostReason.SUPERSEDED if passed else LostReason.EXPIRED, token=handle.token,
        current_token=current, task_id=handle.task_id,
    )  # fmt: skip


def _never_granted(handle: Handle) -> NotFound:
    return NotFound(
        f"handle: this store has granted no such lease (token {handle.token}); "
        "was it made by another store, or changed on the way? Nothing was written",
        code="RELET-HANDLE", field="handle", token=handle.token,
    )  # fmt: skip


def lost_reason(lease: LeaseRow, task: TaskRow, at: Instants, *, even_cancelled: bool = False) -> LostReason | None:
    """Why a lease is lost at this instant, the first reason that fits; None when it is held.

    At the very instant `now == expires` it is expired: never both renewable and claimable, never neither.
    """
    if lease.ended is not None and (reason := _by_holder(lease.ended)) is not None:
        return reason
    if lease.cancelling and not (even_cancelled and lease.ended is None and at.now_ms < lease.expires_ms):
        return LostReason.CANCELLED
    if lease.ended is None and at.now_ms < lease.expires_ms:
        return None
    if task.token != lease.token:
        return LostReason.SUPERSEDED
    return lapsed_by(lease)


def _by_holder(end: End) -> LostReason | None:
    match end:
        case End.COMPLETED | End.FAILED | End.PARKED:
            return LostReason.CLOSED
        case End.RELEASED:
            return LostReason.RELEASED
        case End.LAPSED:
            return None
        case _:
            assert_never(end)


def refuse(
    tx: Tx, lease: LeaseRow, task: TaskRow, at: Instants, reason: LostReason, kept: str | None = None
) -> LeaseLost:
    """A `LeaseLost` that says what was, what is, and what to do; noted in the feed of rejections."""
    late_ms = at.now_ms - lease.expires_ms if at.now_ms >= lease.expires_ms else None
    past = "was let go by its holder's own clock" if late_ms is None else f"expired {late_ms} ms ago"
    tx.refused(lease, task.id, reason, task.token, late_ms, kept)
    told = {
        LostReason.CLOSED: f"it was ended by its own holder ({lease.ended})",
        LostReason.RELEASED: "it was released",
        LostReason.CANCELLED: f"the task is to be cancelled ({task.cancel_reason or task.reason or 'no reason'})",
        LostReason.SUPERSEDED: f"the task has passed to token {task.token}",
        LostReason.CAPPED: f"it reached the longest time it may be held ({lease.max_hold_ms} ms)",
        LostReason.EXPIRED: f"it {past}, last renewed {date(lease.beat_wall_ms):%H:%M:%S} UTC",
        LostReason.HOLDER_DIED: "its process ended, which freed the lock that it was bound to",
    }[reason]
    return LeaseLost(
        f"task {task.id}: token {lease.token} of {lease.holder} is not valid any more: {told}. "
        f"Nothing was written; stop this work and discard it → relet show {task.id}",
        reason=reason, token=lease.token, current_token=task.token,
        task_id=task.id, holder=lease.holder, late_ms=late_ms,
    )  # fmt: skip


def _other_content(lease: LeaseRow, task: TaskRow, ending: Ending) -> Conflict:
    return Conflict(
        f"task {task.id}: token {lease.token} ended it before ({lease.ended}) with other content; "
        f"the first one stands and nothing was changed → relet show {task.id}",
        task_id=task.id, token=lease.token, verb=str(ending.end),
    )  # fmt: skip
