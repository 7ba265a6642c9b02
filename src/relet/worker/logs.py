"""A logging filter that names the task, token, attempt and holder of the code that logs."""

from __future__ import annotations

import logging

from relet.worker.run import current_run


class LogContext(logging.Filter):
    """Add `task`, `token`, `attempt` and `holder` to each record; "-" outside of a run."""

    def filter(self, record: logging.LogRecord) -> bool:
        run = current_run()
        record.task = "-" if run is None else run.task_id
        record.token = "-" if run is None else run.token
        record.attempt = "-" if run is None else run.attempt
        record.holder = "-" if run is None else run.holder
        return True
