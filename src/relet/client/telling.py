"""Log lines about a lease: each names its task, token, attempt and holder, and the reason, whatever formats it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from relet.core.errors import Error, LeaseLost

if TYPE_CHECKING:
    import logging

    from relet.core.model import Grant

INFO: Final = 20
WARNING: Final = 30
"""As in `logging`, which is imported when there is something to say."""
ABOUT: Final = " (task=%s token=%s attempt=%s holder=%s reason=%s)"
"""The end of such a line; the same facts are attributes of its record."""


def tell(
    log: logging.Logger, level: int, grant: Grant, text: str, *args: Any, reason: object = "-",
    raised: BaseException | None = None,
) -> None:  # fmt: skip
    """Log a text about the lease of a grant; `reason` is a word, or the error that has one."""
    if not log.isEnabledFor(level):
        return
    facts = {
        "task": grant.handle.task_id, "token": grant.handle.token, "attempt": grant.attempt, "holder": grant.holder,
        "reason": reason_of(reason) if isinstance(reason, Error) else str(reason),
    }  # fmt: skip
    text = f"{text}{ABOUT}"
    log.log(level, text, *args, *facts.values(), extra=facts, exc_info=raised, stacklevel=2)


def reason_of(error: Error) -> str:
    """Why a lease is lost, or the code of whatever else ended it, such as its timeout."""
    return str(error.reason) if isinstance(error, LeaseLost) and error.code == LeaseLost.code else error.code
