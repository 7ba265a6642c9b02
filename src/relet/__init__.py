"""relet: a task belongs to whoever can still prove it, for as long as they prove it, and to nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relet.client.blocking import Client
from relet.client.blocking_lease import Lease
from relet.connect import connect, connect_async
from relet.core.errors import (
    Conflict,
    Error,
    Forbidden,
    Invalid,
    LeaseLost,
    LeaseStopped,
    NotFound,
    OutcomeUnknown,
    Permanent,
    Refused,
    StaleToken,
    TaskCancelled,
    TaskFailed,
    Temporary,
    Unavailable,
    UpgradeRequired,
)  # fmt: skip
from relet.core.model import Event, LostReason, Rejection, State, Task
from relet.core.trust import Status

if TYPE_CHECKING:
    from relet.client.awaiting import AsyncClient, AsyncLease
    from relet.worker.app import App, RetryPolicy
    from relet.worker.logs import LogContext
    from relet.worker.run import AsyncRun, Run, current_run

__version__ = "0.1.0"

_LATER = {
    "AsyncClient": "relet.client.awaiting", "AsyncLease": "relet.client.awaiting", "App": "relet.worker.app",
    "RetryPolicy": "relet.worker.app", "Run": "relet.worker.run", "AsyncRun": "relet.worker.run",
    "current_run": "relet.worker.run", "LogContext": "relet.worker.logs",
}  # fmt: skip
"""Names that cost an import of asyncio or of the worker; loaded when first asked for."""

__all__ = [
    "App", "AsyncClient", "AsyncLease", "AsyncRun", "Client", "Conflict", "Error", "Event", "Forbidden", "Invalid",
    "Lease", "LeaseLost", "LeaseStopped", "LogContext", "LostReason", "NotFound", "OutcomeUnknown", "Permanent",
    "Refused", "Rejection", "RetryPolicy", "Run", "StaleToken", "State", "Status", "Task", "TaskCancelled",
    "TaskFailed", "Temporary", "Unavailable", "UpgradeRequired", "__version__", "connect", "connect_async",
    "current_run",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        value = globals()[name] = getattr(import_module(_LATER[name]), name)
        return value
    raise AttributeError(f"module 'relet' has no attribute {name!r}")
