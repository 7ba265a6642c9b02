"""A request whose outcome is unknown, sent once more."""

from __future__ import annotations

from typing import Any

import msgspec

from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete


def again(ask: Any) -> Any:
    """The same request, marked where its first try may have been granted something."""
    if isinstance(ask, Claim):
        return msgspec.structs.replace(ask, again=True)
    if isinstance(ask, Complete) and ask.next is not None:
        return msgspec.structs.replace(ask, next=again(ask.next))
    return ask
