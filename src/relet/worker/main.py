"""`relet worker module:app`: find the app, work until told to end."""

from __future__ import annotations

import importlib
import logging
import sys
from typing import Any, TextIO

from relet.client.blocking import Client
from relet.client.redacting import RedactingFormatter
from relet.core.border import invalid, shown
from relet.worker.app import App
from relet.worker.logs import InContext, LogContext

LOG_LINE = "%(asctime)s %(levelname)s %(name)s %(message)s%(context)s"


def load_app(path: str) -> App:
    """The app that `module:name` means; the folder that you are in is searched first. Raises `Invalid`."""
    found = named("app", path, "work:app for `app` in work.py")
    if not isinstance(found, App):
        raise invalid("app", f"{path} is {shown(found)}, not a relet.App")
    return found


def named(field: str, path: str, example: str) -> Any:
    """What `module:name` means, None where the module has no such name. Raises `Invalid`."""
    module_name, colon, name = path.partition(":")
    if not module_name or not colon or not name:
        raise invalid(field, f"{shown(path)} is not module:name, such as {example}")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as wrong:
        if wrong.name != module_name and not module_name.startswith(f"{wrong.name}."):
            raise
        raise invalid(
            field, f"there is no module {module_name} here; run this in the folder that holds it"
        ) from wrong
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def log_to_stderr(level: int = logging.INFO) -> None:
    """Unless the program has set up logging itself: a line each, naming task, token, holder and reason.

    `level` is for what relet itself says; of others it is what they warn of.
    """
    if logging.getLogger().handlers:
        return
    logging.getLogger().addHandler(line_handler(sys.stderr))
    logging.getLogger("relet").setLevel(level)


def line_handler(stream: TextIO) -> logging.Handler:
    """Prints each record as one line, with the facts of the lease that it is about."""
    handler = logging.StreamHandler(stream)
    handler.addFilter(LogContext())
    handler.addFilter(InContext())
    handler.setFormatter(RedactingFormatter(LOG_LINE))
    return handler


def run_worker(
    client: Client, path: str, *, queues: list[str] | None = None, concurrency: int = 1, holder: str | None = None,
    grace: Any = 10,
) -> int:  # fmt: skip
    """Work until SIGTERM or SIGINT; 0 after an orderly end."""
    app = load_app(path)
    log_to_stderr()
    with app.bound_worker(client, queues, concurrency, holder=holder, grace=grace) as worker:
        kinds = ", ".join(sorted(app.handlers))
        sys.stderr.write(f"relet: worker {worker.holder} on {client.place}: {kinds} ({concurrency} at a time)\n")
        worker.wait()
    return 0
