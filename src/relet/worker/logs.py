"""A logging filter that names the task, token, attempt and holder of the code that logs."""

from __future__ import annotations

import logging
from typing import Any, Final

from relet.client.awaiting_lease import AsyncLease
from relet.client.blocking_lease import Lease
from relet.client.durable.facts import current_run
from relet.client.redacting import log_named
from relet.client.telling import ABOUT, tell

FACTS: Final = ("task", "token", "attempt", "holder", "reason")
log: Final = log_named("relet.worker")


class LogContext(logging.Filter):
    """Add `task`, `token`, `attempt`, `holder` and `reason` to each record; "-" where there is none."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "reason"):
            record.reason = "-"
        if hasattr(record, "task"):
            return True  # said by whoever logs about a task from outside of its run
        run = current_run()
        record.task = "-" if run is None else run.task_id
        record.token = "-" if run is None else run.token
        record.attempt = "-" if run is None else run.attempt
        record.holder = "-" if run is None else run.holder
        return True


class InContext(logging.Filter):
    """Add `context` to each record: what `LogContext` knows, unless the record's own text says it."""

    def filter(self, record: logging.LogRecord) -> bool:
        facts = tuple(getattr(record, name) for name in FACTS)
        is_said = getattr(record, "task", "-") == "-" or str(record.msg).endswith((ABOUT, ABOUT % facts))
        record.context = "" if is_said else ABOUT % facts
        return True


def about(
    level: int,
    lease: Lease | AsyncLease,
    text: str,
    *args: Any,
    reason: object = "-",
    raised: BaseException | None = None,
) -> None:
    """Log about a lease in the worker's own name."""
    tell(log, level, lease.belief.grant, text, *args, reason=reason, raised=raised)
