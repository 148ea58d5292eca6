"""Spans of handlers, when opentelemetry-api is installed (the extra `otel`)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from callfan.call import Call

try:
    from opentelemetry import trace
    from opentelemetry.trace import SpanKind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:
    _installed = False
else:
    _installed = True


@contextlib.contextmanager
def span(call: Call, handler: str) -> Iterator[None]:
    """A span below the call's trace context, around a handler."""
    if not _installed:
        yield
        return
    carrier = {k: v for k, v in (("traceparent", call.traceparent), ("tracestate", call.tracestate)) if v}
    parent = TraceContextTextMapPropagator().extract(carrier)
    name = f"{handler} {call.function}"
    attributes: dict[str, str | int] = {
        "callfan.session_id": call.session_id,
        "callfan.turn_id": call.turn_id,
        "callfan.call_id": call.call_id,
        "callfan.function": call.function,
        "callfan.attempt": call.attempt,
    }
    with trace.get_tracer("callfan").start_as_current_span(name, context=parent, kind=SpanKind.CONSUMER, attributes=attributes):
        yield
