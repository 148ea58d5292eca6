"""Spans of handlers, with the SDK of OpenTelemetry."""

from __future__ import annotations

import asyncio

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from callfan import function
from callfan.testing import invoke


def test_handlers_are_spans_below_the_trace_of_the_call() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)

    @function
    def sync() -> str:
        return format(trace.get_current_span().get_span_context().trace_id, "032x")

    @function
    async def asynchronous() -> str:
        await asyncio.sleep(0)
        return format(trace.get_current_span().get_span_context().trace_id, "032x")

    trace_id = "0af7651916cd43dd8448eb211c80319c"
    for f in (sync, asynchronous):
        assert invoke(f, traceparent=f"00-{trace_id}-b7ad6b7169203331-01").text == trace_id
    spans = exporter.get_finished_spans()
    assert [s.name for s in spans] == ["function sync", "function asynchronous"]
    assert all(s.parent is not None and format(s.parent.span_id, "016x") == "b7ad6b7169203331" for s in spans)
    assert spans[0].attributes is not None
    assert spans[0].attributes["callfan.function"] == "sync"
