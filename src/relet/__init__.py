"""relet: a task belongs to whoever can still prove it, for as long as they prove it, and to nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relet.connect import connect, connect_async

if TYPE_CHECKING:
    from relet.client.awaiting import AsyncClient
    from relet.client.awaiting_lease import AsyncLease
    from relet.client.blocking import Client
    from relet.client.blocking_lease import Lease
    from relet.client.durable.contracts import Conditional, Keyed, Natural, Opaque, Queryable
    from relet.client.durable.effects import EffectCall
    from relet.client.durable.retry import RetryPolicy
    from relet.client.durable.run import AsyncRun, Run, current_run
    from relet.client.redacting import Redacting
    from relet.core.errors import (
        Conflict,
        Error,
        Forbidden,
        Invalid,
        LeaseLost,
        LeaseStopped,
        NotApplied,
        NotFound,
        OutcomeUnknown,
        Parked,
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
    from relet.core.redaction import redact
    from relet.core.trust import Status
    from relet.core.work import (
        Artifact,
        Checkpoint,
        Decision,
        DecisionKind,
        Effect,
        EffectState,
        Step,
        Wait,
        WaitKind,
    )
    from relet.worker.app import App
    from relet.worker.logs import LogContext

__version__ = "0.1.0"

_ROOMS = {
    "relet.client.awaiting": ["AsyncClient"],
    "relet.client.awaiting_lease": ["AsyncLease"],
    "relet.client.blocking": ["Client"],
    "relet.client.blocking_lease": ["Lease"],
    "relet.client.durable.contracts": ["Conditional", "Keyed", "Natural", "Opaque", "Queryable"],
    "relet.client.durable.effects": ["EffectCall"],
    "relet.client.durable.retry": ["RetryPolicy"],
    "relet.client.durable.run": ["AsyncRun", "Run", "current_run"],
    "relet.client.redacting": ["Redacting"],
    "relet.core.errors": [
        "Conflict", "Error", "Forbidden", "Invalid", "LeaseLost", "LeaseStopped", "NotApplied", "NotFound",
        "OutcomeUnknown", "Parked", "Permanent", "Refused", "StaleToken", "TaskCancelled", "TaskFailed", "Temporary",
        "Unavailable", "UpgradeRequired",
    ],
    "relet.core.model": ["Event", "LostReason", "Rejection", "State", "Task"],
    "relet.core.redaction": ["redact"],
    "relet.core.trust": ["Status"],
    "relet.core.work": [
        "Artifact", "Checkpoint", "Decision", "DecisionKind", "Effect", "EffectState", "Step", "Wait", "WaitKind",
    ],
    "relet.worker.app": ["App"],
    "relet.worker.logs": ["LogContext"],
}  # fmt: skip
_LATER = {name: room for room, names in _ROOMS.items() for name in names}
"""Loaded when first asked for: a command of the shell needs few of them, and its user waits for each."""

__all__ = [
    "App", "Artifact", "AsyncClient", "AsyncLease", "AsyncRun", "Checkpoint", "Client", "Conditional",
    "Conflict", "Decision", "DecisionKind", "Effect", "EffectCall", "EffectState", "Error", "Event",
    "Forbidden", "Invalid", "Keyed", "Lease", "LeaseLost", "LeaseStopped", "LogContext", "LostReason",
    "Natural", "NotApplied", "NotFound", "Opaque", "OutcomeUnknown", "Parked", "Permanent", "Queryable",
    "Redacting", "Refused", "Rejection", "RetryPolicy", "Run", "StaleToken", "State", "Status", "Step", "Task",
    "TaskCancelled", "TaskFailed", "Temporary", "Unavailable", "UpgradeRequired", "Wait", "WaitKind",
    "__version__", "connect", "connect_async", "current_run", "redact",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        value = globals()[name] = getattr(import_module(_LATER[name]), name)
        return value
    raise AttributeError(f"module 'relet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
