"""What every engine says of a user's own transaction."""

from __future__ import annotations

from relet.core import limits
from relet.core.errors import Refused


def too_long(seconds: float, who: str) -> Refused:
    """It was rolled back, since it kept somebody waiting.

    The work was slow, and not the store: its attempt has failed, and an attempt like it would again.
    """
    longer = ", or claim with a longer ttl" if seconds < limits.TRANSACTION_S_MAX else ""
    return Refused(
        f"your transaction took longer than {seconds:g} s, and kept {who} waiting: it was rolled back, nothing "
        f"was written. Do the slow part before it{longer}",
        code="RELET-TRANSACTION-LONG", seconds=seconds,
    )  # fmt: skip
