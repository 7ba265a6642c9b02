"""A bond: leases that end with the process that holds them, not with their ttl.

Whoever binds holds a lock that the kernel frees at the end of its process, and of every process that inherited it.
The calls that claim under it are named for it, so that a bound lease is known by the call that claimed it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

SIGN: Final = "~"
LOCK_VARIABLE: Final = "RELET_LOCK"
"""Tells a program which descriptor of its own holds which lock."""


class Bond(NamedTuple):
    """A lock held by this process: its random name, and the descriptor that children inherit."""

    lock: str
    descriptor: int


def bound(lock: str | None, call_id: str) -> str:
    """The name of a call whose leases are bound to a lock; None binds to nothing."""
    return call_id if lock is None else f"{lock}{SIGN}{call_id}"


def lock_of(call_id: str | None) -> str | None:
    """The lock that the leases of a call are bound to; None when the ttl alone decides."""
    if call_id is None or SIGN not in call_id:
        return None
    return call_id.partition(SIGN)[0]
