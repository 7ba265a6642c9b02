"""Settle an outage: a server that was started anew or promoted, or whose clock was stepped. One at a time, for all.

Nothing was granted, lost or judged by anybody while nobody could ask: what is not recorded as ended is live for a ttl
from now, and no token that a lost copy of the store may have given out is given out again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
from psycopg import errors as pg

from relet.core import limits
from relet.store.epochs import EPOCH_ZERO_WALL_MS, hours_at
from relet.store.postgres.clock import STEP_MS, StoreClock
from relet.store.postgres.connect import OTHER_WORDS, Connection
from relet.store.postgres.runner import Outage
from relet.store.postgres.texts import Dialect, statement

PER_MS_BITS: Final = 10
"""Tokens go on at the millisecond of the hour: nobody gives out more than a thousand within one."""
LOCK_MS: Final = 200
"""At most so long everybody else waits behind one try to have the store alone."""
TRIES: Final = 5
"""Then somebody's own transaction stays open: it is not waited for, nor is anybody kept waiting for it."""
_NUMBERS: Final = (1 << limits.TOKEN_BITS) - 1


class OtherEpoch(Outage):
    """The store is in an epoch that this process knows nothing of.

    Somebody has settled an outage; or has brought a copy, which has the identity of the store that it comes from.
    """


Ask = Callable[..., Any]
"""One statement by its name; its one row."""


class Right(NamedTuple):
    """What store time should be, and what was wrong with it."""

    now_ms: int
    why: list[str]
    leap_ms: int = 0
    """So far ahead of it was committed already, by those who had no other clock to tell by. It does not go back."""


def settle(connection: Connection, dialect: Dialect, clock: StoreClock) -> None:
    """Extend what is open, raise the epoch, and put store time right; nothing where somebody else has done it."""

    def one(name: str, **params: Any) -> Any:
        return statement(name, dialect).row(connection, params)

    for _ in range(TRIES):
        if _is_settled(one, clock):
            return
        try:
            with connection.transaction():
                # Whoever has read the clock before judges by it until it commits: none of them is left from here on.
                connection.execute(f"SET LOCAL lock_timeout = {LOCK_MS}")
                one("lock_all_out")
                _settle(connection, one, clock)
                return
        except (pg.LockNotAvailable, pg.DeadlockDetected):
            time.sleep(random.uniform(0.5, 1) * LOCK_MS / 1_000)
        except (*OTHER_WORDS, pg.InsufficientPrivilege):
            break
    with connection.transaction():
        # Twice: the first look may have waited, and then shows the run, and the clock, of before.
        one("lock_meta")
        _settle(connection, one, clock)


def _is_settled(one: Ask, clock: StoreClock) -> bool:
    _, _, ahead_ms, steps, is_same_run, clock_ms = one("begin_meta")
    now_ms = clock.instants(clock_ms, ahead_ms).now_ms
    return is_same_run and not clock.is_past(steps) and not _right(one, clock, now_ms, steps).why


def _settle(connection: Connection, one: Ask, clock: StoreClock) -> None:
    connection.execute("SET LOCAL synchronous_commit = 'on'")
    epoch, ahead_ms, steps, is_same_run, server, clock_ms = one("lock_meta")
    if clock.is_past(steps):
        clock.forget()
    now_ms = clock.instants(clock_ms, ahead_ms).now_ms
    right = _right(one, clock, now_ms, steps)
    why = [*right.why, *([] if is_same_run else ["the server was started or promoted"])]
    if not why:
        return
    # The first run of all that a store has seen: nobody was kept from asking before it.
    is_first = not epoch and not is_same_run
    ahead_ms += right.now_ms - now_ms
    if right.leap_ms:
        before = {"expected_ms": right.now_ms - right.leap_ms, "leap_ms": right.leap_ms}
        one("move_delays", **before)
        one("move_leases", **before, now_ms=right.now_ms)
    one("extend_all_open", now_ms=right.now_ms)
    if not is_same_run:
        epoch, n = _beyond(epoch, one("next_token")[0], server, clock_ms)
        one("restart_tokens", n=n)
        one("settle_run", server=server)
    one("settle_meta", epoch=epoch, ahead_ms=ahead_ms, steps=steps + 1)
    if is_first:
        return
    one(
        "add_event", task_seq=None, kind="outage", state=None, token=None, holder=None, at_ms=right.now_ms,
        wall_ms=clock.instants(clock_ms, ahead_ms).wall_ms,
        detail=msgspec.json.encode({"why": ", ".join(why)}).decode(),
    )  # fmt: skip


def _right(one: Ask, clock: StoreClock, now_ms: int, steps: int) -> Right:
    last_ms = int(one("last_reading")[0])
    expected = clock.expected_ms(steps)
    if expected is not None and abs(now_ms - expected) > STEP_MS:
        which = "forward" if now_ms > expected else "back"
        right_ms = max(int(expected), last_ms)
        leap_ms = right_ms - int(expected)
        return Right(right_ms, [f"the server's clock was stepped {which}"], leap_ms if leap_ms > STEP_MS else 0)
    if now_ms < last_ms - STEP_MS:
        return Right(last_ms, ["the server's clock was stepped back"])
    return Right(now_ms, [])


def _beyond(epoch: int, last: int, server: str, clock_ms: int) -> tuple[int, int]:
    """An epoch, and where its tokens begin, that no other copy of this store has given out, nor this one.

    A token is a date, in a way: whatever copy goes on, and however old it is, its clock is past all that was given
    out before. Where it is not, the next epoch begins. Numbers never go back, for a grant that is under way may have
    read the epoch before.
    """
    timeline = server.rpartition("/")[2]
    floor = int(timeline, 16) if timeline and timeline != "unknown" else 0
    hours, within_ms = hours_at(max(EPOCH_ZERO_WALL_MS, clock_ms))
    within = within_ms << PER_MS_BITS
    base = max(floor, hours) << limits.TOKEN_BITS | within
    newest = (epoch << limits.TOKEN_BITS) + last
    if base <= newest:
        base = ((newest >> limits.TOKEN_BITS) + 1) << limits.TOKEN_BITS | within
    # The same token in another way: a larger number goes with a smaller epoch.
    n = base & _NUMBERS
    n += -(-(last + 1 - n) >> limits.TOKEN_BITS << limits.TOKEN_BITS) if n <= last else 0
    return (base - n) >> limits.TOKEN_BITS, n
