"""A request whose outcome is unknown, sent once more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from relet.core.errors import Forbidden, Invalid, OutcomeUnknown, Unavailable, UpgradeRequired
from relet.core.operation import operation_of
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete

NO_WORD: Final = (Unavailable, Forbidden, Invalid, UpgradeRequired)
"""What keeps the second try from the store, and says nothing of the first."""


def surely(call: Callable[[Any], Any], ask: Any) -> Any:
    """The answer of `call`; where nobody can say whether it was kept, it is asked again, once, if that is safe.

    Raises `OutcomeUnknown` where that try does not get through either: that nothing was written is true of it alone.
    """
    try:
        return call(ask)
    except OutcomeUnknown as unknown:
        if not operation_of(type(ask)).replay_safe:
            raise
        try:
            return call(again(ask))
        except NO_WORD as away:
            told = away.detail.get("engine", away.code)
            raise OutcomeUnknown(
                f"{unknown}. It was repeated at once, and that did not get through ({told})",
                code=unknown.code, **unknown.detail,
            ) from away  # fmt: skip


def again(ask: Any) -> Any:
    """The same request, marked where its first try may have been granted something."""
    if isinstance(ask, Claim):
        return msgspec.structs.replace(ask, again=True)
    if isinstance(ask, Complete) and ask.next is not None:
        return msgspec.structs.replace(ask, next=again(ask.next))
    return ask
