"""renew: keep leases that you still hold, many in one transaction."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from relet.core import limits
from relet.core.backend import Request
from relet.core.errors import Error, LeaseLost
from relet.core.fields import TtlMs, items
from relet.core.model import Handle, Instants, LostReason
from relet.core.operation import Operation
from relet.core.rules.guard import hold, is_strange, proven, stranger
from relet.core.rules.settle import is_capped
from relet.core.tx import LeaseRow, Tx


class Renew(Request, frozen=True, kw_only=True):
    """Leases to renew. `ttl_ms` replaces each lease's own ttl for this beat."""

    handles: Annotated[list[Handle], items(0, limits.RENEW_ITEMS_MAX)]
    ttl_ms: TtlMs | None = None


class Renewed(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds left, counted from the store's answer; `capped` when `max_hold` cut it short."""

    left_ms: int
    capped: bool = False


async def renew(tx: Tx, ask: Renew) -> list[Renewed | Error]:
    """Set each lease to end a ttl from now: sets, never adds, never backwards, impossible once expired.

    Answers are aligned with the handles; one refusal does not touch the others.
    """
    answers: list[Renewed | Error] = []
    leases, at = await tx.lock_leases([handle.token for handle in ask.handles])
    beats: list[LeaseRow] = []
    late: dict[int, int] = {}
    for handle in ask.handles:
        lease = leases.get(handle.token)
        if lease is None or not proven(tx, handle):
            answers.append(await stranger(tx, handle))
        elif lease.ended is not None or lease.cancelling or lease.expires_ms <= at.now_ms:
            refusal = await hold(tx, handle)
            assert isinstance(refusal, Error), "judged by the same instant and the same row"
            answers.append(refusal)
        else:
            left_ms = lease.expires_ms - at.now_ms
            if is_strange(tx, lease):
                await tx.loosen_lease(lease.token)
            answer = _extend(lease, at, ask.ttl_ms or lease.ttl_ms, beats)
            if left_ms < lease.ttl_ms * limits.LATE_SHARE and isinstance(answer, Renewed):
                late[lease.token] = left_ms
            if isinstance(answer, LeaseLost):
                task = await tx.lock_task_of(lease.task_seq)
                tx.refused(lease, task.id, answer.reason, lease.token, None, None)
            answers.append(answer)
    if beats:
        await tx.extend_leases(beats)
    if late:
        await tx.note_late_beats(late)
    return answers


def _extend(lease: LeaseRow, at: Instants, ttl_ms: int, beats: list[LeaseRow]) -> Renewed | Error:
    until_ms = max(lease.expires_ms, at.now_ms + ttl_ms)
    capped = False
    if lease.max_hold_ms is not None and until_ms >= lease.claimed_ms + lease.max_hold_ms:
        if is_capped(lease):
            return _at_cap(lease, at)
        until_ms, capped = lease.claimed_ms + lease.max_hold_ms, True
    lease.expires_ms, lease.beat_ms, lease.beat_wall_ms = until_ms, at.now_ms, at.wall_ms
    beats.append(lease)
    return Renewed(left_ms=until_ms - at.now_ms, capped=capped)


def _at_cap(lease: LeaseRow, at: Instants) -> LeaseLost:
    left_ms = lease.expires_ms - at.now_ms
    return LeaseLost(
        f"token {lease.token} of {lease.holder} may be held for {lease.max_hold_ms} ms (max_hold) and no longer; "
        f"{left_ms} ms are left, save and finish, or release",
        reason=LostReason.CAPPED, token=lease.token, current_token=lease.token, left_ms=left_ms,
    )  # fmt: skip


RENEW: Final = Operation("renew", Renew, list[Renewed], renew, "Keep leases that you still hold.", durable=False)
