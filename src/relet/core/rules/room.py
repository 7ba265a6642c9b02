"""room: how many more tasks of a queue may be held now, by its limits on live leases and on grants in a time."""

from __future__ import annotations

from enum import StrEnum, unique
from typing import NamedTuple

from relet.core import limits
from relet.core.model import Instants
from relet.core.rules.turns import WITHOUT_SHARE
from relet.core.tx import QueueRow, TaskRow, Tx


@unique
class HeldBack(StrEnum):
    """Why a queue grants nothing, or nothing of one share."""

    PAUSED = "paused"
    CONCURRENCY = "concurrency"
    SHARE_CONCURRENCY = "share_concurrency"
    RATE = "rate"


class Back(NamedTuple):
    """What holds tasks back, and in how many milliseconds it ends by itself; None where somebody has to end it."""

    why: HeldBack
    next_ms: int | None


class Bucket(NamedTuple):
    """How many grants a rate lets through now, and in how many milliseconds the next one, 0 for at once."""

    ready: int
    next_ms: int


async def room(tx: Tx, queue: QueueRow, at: Instants, wanted: int) -> int:
    """How many of the `wanted` grants the queue's own limits allow.

    Counted under the lock: leases that are not recorded as ended. Who asks has recorded the lapsed ones before, so
    that no later clock revives a lease whose place was given away.
    """
    if queue.rate is not None:
        if is_overdrawn(queue, at):
            # Written down: read against a clock that goes on, it would be as far away at every look.
            queue.full_us = _full_us(queue, at)
            await tx.note_turn(queue)
        wanted = min(wanted, bucket(queue, at).ready)
    if queue.concurrency is not None and wanted:
        left = queue.concurrency - await tx.count_places(queue.name, None)
        if left < wanted:
            # Only now are those looked for that ended: a queue far below its limit pays for one count.
            await tx.clear_places(queue.name, None)
            left = queue.concurrency - await tx.count_places(queue.name, None)
        wanted = min(wanted, left)
    return max(0, wanted)


async def held_back(tx: Tx, queue: QueueRow, share: str | None, at: Instants) -> Back | None:
    """Why a claim would be granted nothing now, of this share where one is given; None when nothing is in the way.

    For whoever looks, and for workers that wait: it reads alone, and needs no lock.
    """
    if queue.paused:
        return Back(HeldBack.PAUSED, None)
    most = queue.concurrency
    if most is not None and await tx.count_live_places(queue.name, None) >= most:
        return Back(HeldBack.CONCURRENCY, None)
    most = queue.share_concurrency
    if share is not None and most is not None and await tx.count_live_places(queue.name, share) >= most:
        return Back(HeldBack.SHARE_CONCURRENCY, None)
    if queue.rate is not None and (next_ms := bucket(queue, at).next_ms):
        return Back(HeldBack.RATE, next_ms)
    return None


async def has_share_room(tx: Tx, queue: QueueRow, task: TaskRow) -> bool:
    """Has the task's share a place left; tasks without a share are held by no such limit."""
    if queue.share_concurrency is None or task.share in (None, WITHOUT_SHARE):
        return True
    await tx.clear_places(queue.name, task.share)
    return await tx.count_places(queue.name, task.share) < queue.share_concurrency


async def occupy(tx: Tx, queue: QueueRow, task: TaskRow, at: Instants) -> None:
    """Take a place for the lease that was just granted, and a grant from the bucket."""
    if queue.rate is not None:
        queue.full_us = _full_us(queue, at) + _apart_us(queue)
    if queue.is_counted:
        share = task.share or WITHOUT_SHARE
        if queue.concurrency is None:
            await tx.clear_places(queue.name, share)
        await tx.take_place(queue.name, share, task.token)


def is_overdrawn(queue: QueueRow, at: Instants) -> bool:
    """Is more than a whole bucket owed, by a rate that was lower or a clock that was ahead: a claim mends it."""
    return queue.rate is not None and _full_us(queue, at) < (queue.full_us or 0)


def bucket(queue: QueueRow, at: Instants) -> Bucket:
    """What the rate lets through at this instant of store time."""
    assert queue.rate is not None, "asked where there is a rate"
    apart_us = _apart_us(queue)
    free_us = _capacity_us(queue) - (_full_us(queue, at) - at.now_ms * 1_000)
    missing_us = max(0, apart_us - free_us)
    return Bucket(ready=max(0, free_us // apart_us), next_ms=-(-missing_us // 1_000))


def burst(rate: int) -> int:
    """How many grants a queue that has rested lets through at once."""
    return max(1, int(rate * limits.RATE_BURST_SHARE))


def _apart_us(queue: QueueRow) -> int:
    """Between two grants at the full rate, rounded up, so that it is never passed."""
    assert queue.rate is not None and queue.rate_ms is not None, "set together"
    return -(-queue.rate_ms * 1_000 // queue.rate)


def _capacity_us(queue: QueueRow) -> int:
    """What a full bucket holds, as time: its grants, and less than one more, so that who asks late loses nothing."""
    assert queue.rate is not None, "asked where there is a rate"
    apart_us = _apart_us(queue)
    return burst(queue.rate) * apart_us + min(apart_us - 1, limits.SECOND_MS * 1_000)


def _full_us(queue: QueueRow, at: Instants) -> int:
    """When the bucket is full: not before now, and no later than an empty one would be.

    So a clock that went back, or a rate that was raised, keeps nobody waiting longer than for one grant.
    """
    now_us = at.now_ms * 1_000
    return min(max(queue.full_us or 0, now_us), now_us + _capacity_us(queue))
