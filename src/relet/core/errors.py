"""Every refusal, grouped by what the caller should do next.

Three families: `Refused` (declined, nothing changed), `Unavailable` (nothing was committed, retry freely) and
`OutcomeUnknown` (it may have happened; repeat only what is safe to repeat, with the same request id).
"""

from __future__ import annotations

from typing import Any, Final

from relet.core.model import LostReason

DAMAGED: Final = "RELET-DAMAGED"
"""What is stored is not what was written: the one code of `Unavailable` that asking again does not mend."""


class Error(Exception):
    """Root of what relet raises: a stable `.code`, `.retryable`, and facts in `.detail`."""

    code: str = "RELET-ERROR"
    retryable: bool = False

    def __init__(self, message: str, *, code: str | None = None, **detail: Any) -> None:
        super().__init__(message)
        self.message = message
        self.detail: dict[str, Any] = detail
        if code is not None:
            self.code = code
        if self.code == DAMAGED:
            self.retryable = False

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross processes, in pools and pipes; by default the facts given by keyword would stay behind.
        return _again, (type(self), self.message, self.code, self.detail)


def _again(kind: type[Error], message: str, code: str, detail: dict[str, Any]) -> Error:
    return kind(message, code=code, **detail)


class Refused(Error):
    """Understood and declined; nothing changed. Repeating it as it is will be declined again."""

    code = "RELET-REFUSED"


class Invalid(Refused):
    """An argument is wrong: `.detail["field"]` names it, the message names the limit and the way out."""

    code = "RELET-INVALID"


class NotFound(Refused):
    """What was named does not exist here."""

    code = "RELET-NOT-FOUND"


class Forbidden(Refused):
    """The credential does not allow this."""

    code = "RELET-FORBIDDEN"


class Conflict(Refused):
    """The state of the task, or an earlier request with the same id, stands against this."""

    code = "RELET-CONFLICT"


class UpgradeRequired(Refused):
    """The store's schema asks for a newer (or older) relet than this one."""

    code = "RELET-UPGRADE"


class LeaseLost(Refused):
    """The lease is not yours any more. `.reason` says why, `.token` is yours, `.current_token` the task's newest."""

    code = "RELET-LEASE-LOST"

    def __init__(
        self,
        message: str,
        *,
        reason: LostReason | str,
        token: int | None = None,
        current_token: int | None = None,
        code: str | None = None,
        **detail: Any,
    ) -> None:
        reason = LostReason(reason)
        super().__init__(message, code=code, reason=str(reason), token=token, current_token=current_token, **detail)
        self.reason = reason
        self.token = token
        self.current_token = current_token


class StaleToken(LeaseLost):
    """A fence has seen a larger token than the one that was shown to it."""

    code = "RELET-STALE-TOKEN"


class Unavailable(Error):
    """The store could not be reached or was busy for too long; nothing was committed."""

    code = "RELET-UNAVAILABLE"
    retryable = True


class OutcomeUnknown(Error):
    """The store may or may not have committed. Repeat with the same request id, or look."""

    code = "RELET-OUTCOME-UNKNOWN"


class TaskFailed(Error):
    """`result` was asked of a task that failed for good."""

    code = "RELET-TASK-FAILED"


class TaskCancelled(Error):
    """`result` was asked of a task that was cancelled."""

    code = "RELET-TASK-CANCELLED"


class Permanent(Exception):
    """Raised by a handler: this task fails for good."""

    def __init__(self, message: str = "", *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


class Temporary(Exception):
    """Raised by a handler: try again, after `delay` (seconds, timedelta or text) where one is given."""

    def __init__(self, message: str = "", *, delay: Any = None, code: str | None = None) -> None:
        super().__init__(message)
        self.delay = delay
        self.code = code


class NotApplied(Exception):
    """Raised by the function of an effect: the other side certainly did not do it, so trying again is safe."""


class Parked(BaseException):
    """Unwinds a handler whose task now waits without a lease; a bare `except Exception` cannot swallow it.

    The next holder runs the handler from its first line, and what is memoised returns at once.
    """

    def __init__(self, task_id: str, name: str) -> None:
        super().__init__(f"task {task_id} is parked: it waits with {name!r}")
        self.task_id = task_id
        self.name = name


class LeaseStopped(BaseException):
    """Raised into a blocking handler whose lease is gone; a bare `except Exception` cannot swallow it."""

    def __init__(self, cause: Error) -> None:
        super().__init__(str(cause))
        self.cause = cause


FAMILIES: tuple[type[Error], ...] = (
    Invalid, NotFound, Forbidden, Conflict, UpgradeRequired, StaleToken, LeaseLost,
    Unavailable, OutcomeUnknown, TaskFailed, TaskCancelled, Refused, Error,
)  # fmt: skip
"""Every class that crosses a wire, most exact first."""
