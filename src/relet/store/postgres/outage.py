"""Settle an outage: a server that was started anew or promoted, or whose clock was stepped. One at a time, for all.

Nothing was granted, lost or judged by anybody while nobody could ask: what is not recorded as ended is live for a ttl
from now, and no token that a lost copy of the store may have given out is given out again.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from relet.core import limits
from relet.store.epochs import EPOCH_ZERO_WALL_MS, hours_at
from relet.store.postgres.clock import STEP_MS, StoreClock
from relet.store.postgres.connect import Connection
from relet.store.postgres.runner import Outage
from relet.store.postgres.texts import Dialect, statement

PER_MS_BITS: Final = 10
"""Tokens go on at the millisecond of the hour: nobody gives out more than a thousand within one."""
_NUMBERS: Final = (1 << limits.TOKEN_BITS) - 1


class OtherEpoch(Outage):
    """The store is in an epoch that this process knows nothing of.

    Somebody has settled an outage; or has brought a copy, which has the identity of the store that it comes from.
    """


def settle(connection: Connection, dialect: Dialect, clock: StoreClock) -> None:
    """Extend what is open, raise the epoch, and put store time right; nothing where somebody else has done it."""

    def one(name: str, **params: Any) -> Any:
        known = statement(name, dialect)
        cursor = connection.execute(known.text, known.values(params))
        return cursor.fetchone() if cursor.description else None

    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = 'on'")
        # Twice: the first look may have waited, and then shows the run, and the clock, of before.
        one("lock_meta")
        epoch, ahead_ms, steps, is_same_run, server, clock_ms = one("lock_meta")
        now_ms = clock.instants(clock_ms, ahead_ms).now_ms
        right_ms, why = _right(clock, now_ms, steps, int(one("last_reading")[0]))
        if not is_same_run:
            why.append("the server was started or promoted")
        if not why:
            return
        # The first run of all that a store has seen: nobody was kept from asking before it.
        is_first = not epoch and not is_same_run
        ahead_ms += right_ms - now_ms
        one("extend_all_open", now_ms=right_ms)
        if not is_same_run:
            epoch, n = _beyond(epoch, one("next_token")[0], server, clock_ms)
            one("restart_tokens", n=n)
            one("settle_run", server=server)
        one("settle_meta", epoch=epoch, ahead_ms=ahead_ms, steps=steps + 1)
        if is_first:
            return
        one(
            "add_event", task_seq=None, kind="outage", state=None, token=None, holder=None, at_ms=right_ms,
            wall_ms=clock.instants(clock_ms, ahead_ms).wall_ms,
            detail=msgspec.json.encode({"why": ", ".join(why)}).decode(),
        )  # fmt: skip


def _right(clock: StoreClock, now_ms: int, steps: int, last_ms: int) -> tuple[int, list[str]]:
    """What store time should be, and what was wrong with it."""
    expected = clock.expected_ms(steps)
    if expected is not None and abs(now_ms - expected) > STEP_MS:
        which = "forward" if now_ms > expected else "back"
        return max(int(expected), last_ms), [f"the server's clock was stepped {which}"]
    if now_ms < last_ms - STEP_MS:
        return last_ms, ["the server's clock was stepped back"]
    return now_ms, []


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
