"""check: is this lease yours at this very instant; for a transaction that commits something beside it."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core.backend import Request
from relet.core.errors import Error
from relet.core.model import Handle
from relet.core.operation import Operation
from relet.core.rules.guard import Repeat, hold
from relet.core.tx import Tx


class Check(Request, frozen=True, kw_only=True):
    """Which lease."""

    handle: Handle


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """How long it lasts unless it is renewed."""

    left_ms: int


async def check(tx: Tx, ask: Check) -> Checked | Error:
    """Judge it under its lock, by the clock read after that."""
    held = await hold(tx, ask.handle)
    if isinstance(held, Error):
        return held
    assert not isinstance(held, Repeat), "only verbs that end a lease repeat"
    return Checked(left_ms=held.lease.expires_ms - held.at.now_ms)


CHECK: Final = Operation("check", Check, Checked, check, "Is this lease yours at this instant.")
