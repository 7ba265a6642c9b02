"""The attempts of a worker as spans of a trace, by the API of opentelemetry alone; the program chooses the SDK."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from relet.client.durable.facts import current_run
from relet.client.redacting import telling_errors
from relet.core.errors import Invalid
from relet.core.span_facts import span_facts

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from relet.worker.app import App, Handler


def instrument(app: App) -> None:
    """Give each handler that the app has by now a span around each of its attempts.

    Call it in the module of the handlers, below them, so that a child process that runs one apart has it as well.
    Calling it again is for handlers that are new. Raises `Invalid` without the package opentelemetry-api.
    """
    try:
        from opentelemetry import trace
    except ModuleNotFoundError as missing:
        raise Invalid(
            "otel: needs the package opentelemetry-api → pip install 'relet[otel]'", field="otel"
        ) from missing
    tracer = trace.get_tracer("relet.worker")
    for handler in app.handlers.values():
        if not hasattr(handler.function, _MARK):
            handler.function = _spanned(handler, tracer)


_MARK = "relet_span"


def _spanned(handler: Handler, tracer: Tracer) -> Callable[..., Any]:
    inner = handler.function

    if handler.binding.is_async:

        @functools.wraps(inner)
        async def awaited(*args: Any, **named: Any) -> Any:
            with _span(handler, tracer):
                return await inner(*args, **named)

        spanned: Callable[..., Any] = awaited
    else:

        @functools.wraps(inner)
        def called(*args: Any, **named: Any) -> Any:
            with _span(handler, tracer):
                return inner(*args, **named)

        spanned = called
    setattr(spanned, _MARK, True)
    return spanned


@contextmanager
def _span(handler: Handler, tracer: Tracer) -> Iterator[None]:
    from opentelemetry.trace import StatusCode

    run = current_run()
    # There is none where a handler is called as the function that it is.
    facts = {} if run is None else span_facts(run.task_id, run.token, run.lease.queue, run.attempt)
    with (
        tracer.start_as_current_span(
            f"task {handler.kind}", attributes=facts, record_exception=False, set_status_on_exception=False
        ) as span,
        telling_errors(span, StatusCode.ERROR),
    ):
        yield
