"""What the work of this thread or task says of its own lease; asked where something is written under a token."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

CHECK: ContextVar[Callable[[int], None] | None] = ContextVar("relet_check", default=None)
"""Set by whoever carries a lease; None where no work of a lease is under way."""


def check_held(token: int) -> None:
    """Raise `LeaseLost` when the lease of this token is the current work's, and its holder trusts it no more.

    A token that is not the current work's is nobody's here: the target alone judges it.
    """
    check = CHECK.get()
    if check is not None:
        check(token)
