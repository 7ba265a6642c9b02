"""What every engine says of a user's own transaction."""

from __future__ import annotations

from relet.core.errors import Unavailable


def too_long(seconds: float, who: str) -> Unavailable:
    """It was rolled back, since it kept somebody waiting."""
    return Unavailable(
        f"your transaction took longer than {seconds:g} s, and kept {who} waiting: it was rolled back, nothing "
        "was written. Do the slow part before it, or claim with a longer ttl",
        code="RELET-TRANSACTION-LONG", seconds=seconds,
    )  # fmt: skip
