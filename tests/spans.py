"""A tracer that keeps its spans, made of the API of opentelemetry alone."""

from opentelemetry import context, trace
from opentelemetry.trace import NonRecordingSpan, NoOpTracer, SpanContext, TraceFlags


class KeptSpan(NonRecordingSpan):
    """A span that remembers what it was told."""

    def __init__(self, name, parent, attributes):
        super().__init__(SpanContext(parent.trace_id or 1, 2, is_remote=False, trace_flags=TraceFlags(1)))
        self.name, self.parent, self.attributes = name, parent, dict(attributes or {})
        self.status, self.raised, self.ended, self.said = None, None, False, []

    def is_recording(self):
        return True

    def set_attribute(self, key, value):
        self.attributes[key] = value

    def set_attributes(self, attributes):
        self.attributes.update(attributes)

    def set_status(self, status, description=None):
        self.status = getattr(status, "status_code", status)
        self.said.append(description or getattr(status, "description", None))

    def add_event(self, name, attributes=None, timestamp=None):
        self.said.append((name, attributes))

    def record_exception(self, exception, *_, **__):
        self.raised = exception

    def end(self, end_time=None):
        self.ended = True


class KeepingTracer(NoOpTracer):
    """Gives spans out, and keeps them."""

    def __init__(self):
        self.spans = []

    def start_span(self, name, context=None, kind=None, attributes=None, *_, **__):
        parent = trace.get_current_span(context).get_span_context()
        self.spans.append(KeptSpan(name, parent, attributes))
        return self.spans[-1]

    def start_as_current_span(self, name, context=None, kind=None, attributes=None, *_, **options):
        telling = {name: options.get(name, True) for name in ("record_exception", "set_status_on_exception")}
        return trace.use_span(self.start_span(name, context, kind, attributes), end_on_exit=True, **telling)


def keep_spans(monkeypatch):
    """All tracers that are asked for from now on are one that keeps its spans; answers those."""
    tracer = KeepingTracer()
    monkeypatch.setattr(trace, "get_tracer", lambda *_, **__: tracer)
    monkeypatch.setattr(trace, "get_tracer_provider", trace.NoOpTracerProvider)
    return tracer.spans


def nothing_is_current():
    """Has every span been left."""
    return trace.get_current_span(context.get_current()) is trace.INVALID_SPAN
