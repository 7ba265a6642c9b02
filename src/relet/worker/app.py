"""An App: handlers by kind, their knobs, and the ways to run them; nothing global, nothing started by an import."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from relet.client import asks
from relet.client.blocking import Client
from relet.client.durable.retry import RetryPolicy
from relet.core import border, limits
from relet.core.border import invalid, shown
from relet.core.rules.grant import Knobs
from relet.worker.binding import Binding
from relet.worker.ways import Ways

if TYPE_CHECKING:
    from relet.client.awaiting import AsyncClient
    from relet.worker.worker import Worker

KINDS_MAX = 1_000


class Handler:
    """A function that does one kind of task; still callable as it was written."""

    def __init__(
        self, function: Callable[..., Any], kind: str, queue: str, knobs: Knobs, ways: Ways,
        concurrency: int | None = None,
    ) -> None:  # fmt: skip
        functools.update_wrapper(self, function)
        self.function = function
        self.kind = kind
        self.queue = queue
        self.knobs = knobs
        self.concurrency = concurrency
        """How many of its kind one worker runs at once; None for as many as the worker does."""
        self.ways = ways
        self.binding = Binding(function, kind)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.function(*args, **named)

    def submit(self, db: Client | AsyncClient, /, *args: Any, **named: Any) -> Any:
        """Put a task for this handler into its queue: the function's own arguments, and options of `submit`.

        With an awaiting client the answer is awaited. Raises `Invalid` when the arguments do not fit.
        """
        payload, options = self.binding.input_of(args, named)
        return db.submit(self.queue, payload, kind=self.kind, **options)


class App:
    """A set of handlers. `@app.task("report")` adds one."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}

    def task(
        self, kind: str | Callable[..., Any] | None = None, *, queue: str | None = None, ttl: Any = None,
        retry: RetryPolicy | None = None, timeout: Any = None, max_hold: Any = None, max_silence: Any = None,
        heartbeat: str = "thread", isolation: str | None = None, concurrency: int | None = None,
    ) -> Any:  # fmt: skip
        """Make a function the handler of a kind (its own name, unless given) in a queue (the kind's name).

        `concurrency` is how many of the kind one worker runs at once, where that is fewer than it runs of all.
        `heartbeat="process"` renews from a process of its own, for work that holds the interpreter's lock;
        `isolation="process"` runs the handler in a child process, which can be killed; after `max_silence` without
        a save, step, effect or note of progress the lease is not renewed any more.
        """
        if callable(kind):
            return self.task()(kind)
        ways = Ways.of(heartbeat, isolation, max_silence)
        if concurrency is not None:
            concurrency = border.whole("concurrency", concurrency, least=1, most=limits.CONCURRENCY_MAX)
        policy = retry or RetryPolicy()
        if not isinstance(policy, RetryPolicy):
            raise invalid("retry", f"{shown(retry)} is not a RetryPolicy")
        knobs = asks.knobs(
            ttl=ttl, timeout=timeout, max_hold=max_hold, max_attempts=policy.max_attempts,
            max_losses=policy.max_losses, base=policy.base, cap=policy.cap,
        )  # fmt: skip

        def add(function: Callable[..., Any]) -> Handler:
            if not callable(function):
                raise invalid("handler", f"{shown(function)} is not a function")
            given = getattr(function, "__name__", None) if kind is None else kind
            if given is None:
                raise invalid("kind", f'{shown(function)} has no name of its own; give its kind, app.task("report")')
            name = border.name("kind", given)
            if name in self.handlers:
                raise invalid("kind", f"{name!r} has a handler already; give each kind one")
            if len(self.handlers) >= KINDS_MAX:
                raise invalid("kind", f"there are {KINDS_MAX} handlers already")
            handler = Handler(function, name, border.name("queue", queue or name), knobs, ways, concurrency)
            self.handlers[name] = handler
            return handler

        return add

    def worker(
        self, db: Client | AsyncClient, queues: str | list[str] | None = None, concurrency: int = 1,
        signals: bool = False, *, holder: str | None = None, grace: Any = 10,
    ) -> Worker:  # fmt: skip
        """A worker for `with` or `async with`; leaving the block drains it.

        `queues` limits it to some; `concurrency` is how many tasks run at once; with `signals` SIGTERM and SIGINT
        drain it and a second one aborts. `grace` is how long handlers may go on once it drains.
        """
        from relet.worker.worker import Worker

        return Worker(self, db, queues=queues, concurrency=concurrency, signals=signals, holder=holder, grace=grace)

    def bound_worker(
        self, db: Client, queues: str | list[str] | None, concurrency: int, *, holder: str | None, grace: Any
    ) -> Worker:  # fmt: skip
        """The worker of a process that does nothing else: its leases end with the process, proved by a lock."""
        from relet.worker.worker import Worker

        return Worker(
            self, db, queues=queues, concurrency=concurrency, signals=True, holder=holder, grace=grace, bind=True
        )

    def run(self, url: str | None = None, *, concurrency: int = 1, queues: str | list[str] | None = None) -> None:
        """Work until SIGTERM or SIGINT, from the main thread."""
        from relet.connect import connect

        with connect(url) as db, self.bound_worker(db, queues, concurrency, holder=None, grace=10) as worker:
            worker.wait()

    def run_until_idle(
        self, db: Client | AsyncClient, *, queues: str | list[str] | None = None, concurrency: int = 1
    ) -> int:
        """Work until nothing is ready and nothing runs; how many attempts were made. For tests and notebooks.

        Tasks that are delayed, or wait for a person, are left as they are.
        """
        with self.worker(db, queues, concurrency) as worker:
            return worker.wait_until_idle()
