"""What a test may watch of a run: each call of an effect's function, and orders to stop that were not heeded."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import msgspec

from relet.core.work import Contract


class Saw(StrEnum):
    """What was seen."""

    CALLED = "called"
    """The function of an effect is called, now."""
    ANSWERED = "answered"
    """It returned; the receipt is not kept yet."""
    REFUSED = "refused"
    """It raised `NotApplied`: nothing has happened."""
    RAISED = "raised"
    """It raised anything else, which says nothing of what has happened."""
    LOOKED = "looked"
    """The check of a contract was asked; without a receipt it found nothing."""
    UNHEEDED = "unheeded"
    """A handler returned although a call of it had raised that it must stop."""


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was seen, in the process of the run; the store does not know of it."""

    what: Saw
    task_id: str
    token: int
    name: str = ""
    """The effect's name; of an order to stop, why it was given."""
    effect: str = ""
    """The effect's full id."""
    key: str = ""
    attempt: int = 0
    timeout_ms: int = 0
    contract: Contract | None = None
    payload: str = ""
    """As canonical JSON, and so is the receipt."""
    receipt: str | None = None


Witness = Callable[[Sight], None]
"""Set as `client.witness`. It is called in the thread of the run, which waits until it returns."""
