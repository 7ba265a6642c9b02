"""Requests as spans of a trace, where the program that serves has opentelemetry; only its API is used here."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from relet.client.redacting import telling_errors
from relet.core.model import Grant, Handle
from relet.core.rules.complete import Complete
from relet.core.span_facts import span_facts
from relet.server.service import Service
from relet.server.timed import asked_for

PARENT: Final = (b"traceparent", b"tracestate")
FAULT: Final = 500


def traced(app: ASGIApp, service: Service) -> ASGIApp:
    """The application with a span around each operation; as it is, and nothing imported, without opentelemetry."""
    if find_spec("opentelemetry") is None:
        return app
    from opentelemetry import propagate, trace

    tracer = trace.get_tracer("relet.server")
    service.told.append(_teller(trace.get_current_span))

    async def spanned(scope: Scope, receive: Receive, send: Send) -> None:
        # Streams last for hours, who looks changes nothing, and where no SDK was set up nobody would see them.
        unseen = isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
        if unseen or scope["type"] != "http" or scope["method"] not in ("POST", "PUT"):
            await app(scope, receive, send)
            return
        told = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in PARENT}
        name = asked_for(scope)
        with tracer.start_as_current_span(
            f"relet.{name}", context=propagate.extract(told), kind=trace.SpanKind.SERVER,
            attributes={"relet.operation": name, "http.request.method": scope["method"]},
            record_exception=False, set_status_on_exception=False,
        ) as span, telling_errors(span, trace.StatusCode.ERROR):  # fmt: skip

            async def seen(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= FAULT:
                        span.set_status(trace.StatusCode.ERROR)
                await send(message)

            await app(scope, receive, seen)

    return spanned


def _teller(current: Callable[[], Any]) -> Callable[[str, Any, Any, float], None]:
    def tell(_tenant: str, ask: Any, answer: Any, _asked_at: float) -> None:
        if (span := current()).is_recording() and (facts := _facts(ask, answer)) is not None:
            span.set_attributes(facts)

    return tell


def _facts(ask: Any, answer: Any) -> dict[str, str | int] | None:
    """Of what was asked under one lease, or granted as one; a batch is of many tasks, and names none."""
    match (ask.next and answer.grants) if isinstance(ask, Complete) else answer:
        case [Grant() as grant]:
            return span_facts(grant.handle.task_id, grant.handle.token, grant.queue, grant.attempt)
    match getattr(ask, "handle", None):
        case Handle() as handle:
            return span_facts(handle.task_id, handle.token)
    return None
