"""One holder: works with the user's app on the store of a run until nothing is left to do, or the plan strikes."""

from __future__ import annotations

import os
import random
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from relet.client.durable.sight import Sight
from relet.core.backend import Backend
from relet.core.border import invalid, shown
from relet.testing.clock import Clock
from relet.testing.crash.intercept import Interceptor
from relet.testing.crash.plan import read
from relet.testing.crash.trace import Seen, Trace
from relet.testing.stores import SteeredClient, open_store
from relet.worker.main import load_app, log_to_stderr, named

CLOCK = "clock"
TRACE = "trace"
OUTSIDE = "outside"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a holder is told: everything that its process does not inherit."""

    app: str
    folder: str
    holder: str
    fault: str
    wrap: str | None
    url: str | None
    schema: str
    sys_path: list[str]
    environment: dict[str, str] = {}
    chance: str
    """What Python's own random numbers begin with: the same for the n-th holder of each run with a seed."""


def work(paper: Path, line_fd: int) -> None:
    """Work to an order until nothing is ready and nothing runs.

    Over the line it says that it was granted a lease, and hears that it may go on after it was stopped.
    """
    order = msgspec.json.decode(paper.read_bytes(), type=Order)
    os.environ.clear()
    os.environ.update(order.environment)
    sys.path[:] = order.sys_path
    random.seed(order.chance)
    folder = Path(order.folder)
    trace, clock = Trace(folder / TRACE), Clock(folder / CLOCK)
    line = socket.socket(fileno=line_fd)
    plan = read(order.fault)

    def between(backend: Backend) -> Backend:
        inner = backend if order.wrap is None else function_of("wrap", order.wrap)(backend)
        return Interceptor(inner, trace, plan[0] if plan else None, line)

    app = load_app(order.app)
    log_to_stderr()
    with open_store(
        folder, clock, holder=order.holder, wrap=between, url=order.url, schema=order.schema
    ) as client:  # fmt: skip
        client.witness = _witness(trace, client)
        app.run_until_idle(client)


def _witness(trace: Trace, client: SteeredClient) -> Callable[[Sight], None]:
    def see(sight: Sight) -> None:
        mono_ms = int(time.monotonic() * 1_000)
        trace.add(Seen(os.getpid(), sight, client.clock.wall_ms(), mono_ms))

    return see


def function_of(field: str, path: str) -> Callable[..., Any]:
    """The function that `module:name` means. Raises `Invalid`."""
    found = named(field, path, "checks:sent_once")
    if not callable(found):
        raise invalid(field, f"{path} is {shown(found)}, not a function")
    return found  # type: ignore[no-any-return]  # narrowed to a callable
