"""From an error to its exit code, and to the paragraph or the object that tells it."""

from __future__ import annotations

from typing import Any, Final

from relet.cli.exits import Exit
from relet.core import errors

BY_ERROR: Final[tuple[tuple[type[Exception], Exit], ...]] = (
    (errors.Invalid, Exit.USAGE),
    (errors.NotFound, Exit.NOT_FOUND),
    (errors.Forbidden, Exit.FORBIDDEN),
    (errors.Conflict, Exit.CONFLICT),
    (errors.LeaseLost, Exit.LOST),
    (errors.Unavailable, Exit.UNAVAILABLE),
    (errors.OutcomeUnknown, Exit.UNKNOWN),
    (TimeoutError, Exit.TIMEOUT),
    (errors.Error, Exit.FAILED),  # TaskFailed, TaskCancelled, UpgradeRequired
)
"""The first row that fits decides."""

TIMEOUT_CODE: Final = "RELET-TIMEOUT"


def exit_of(error: errors.Error | TimeoutError) -> Exit:
    """The exit code of an error."""
    return next(code for kind, code in BY_ERROR if isinstance(error, kind))


def told(error: errors.Error | TimeoutError, place: str | None) -> dict[str, Any]:
    """An error as code, message and detail; what was not found is told with the store it was looked for in."""
    if not isinstance(error, errors.Error):
        return {"code": TIMEOUT_CODE, "message": str(error) or "not finished in time", "detail": {}}
    message, detail = error.message, dict(error.detail)
    if isinstance(error, errors.NotFound) and place is not None:
        message, detail["place"] = f"{message}. The store is {place}", place
    return {"code": error.code, "message": message, "detail": detail}
