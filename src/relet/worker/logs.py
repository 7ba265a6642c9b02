"""A logging filter that names the task, token, attempt and holder of the code that logs."""

from __future__ import annotations

import logging

from relet.client.blocking_lease import Lease
from relet.client.durable.facts import current_run


class LogContext(logging.Filter):
    """Add `task`, `token`, `attempt` and `holder` to each record; "-" outside of a run."""

    def filter(self, record: logging.LogRecord) -> bool:
        if hasattr(record, "task"):
            return True  # said by whoever logs about a task from outside of its run
        run = current_run()
        record.task = "-" if run is None else run.task_id
        record.token = "-" if run is None else run.token
        record.attempt = "-" if run is None else run.attempt
        record.holder = "-" if run is None else run.holder
        return True


def about(lease: Lease) -> dict[str, object]:
    """A task's facts as `extra=` of a record that is logged outside of its run."""
    return {"task": lease.task_id, "token": lease.token, "attempt": lease.attempt, "holder": lease.holder}
