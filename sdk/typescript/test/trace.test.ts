import assert from "node:assert/strict";
import { test } from "node:test";
import { context, propagation, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { tracing } from "#internal/trace.js";

test("a handler runs in a span that continues the call's trace", async () => {
  const exporter = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const traced = await tracing();
  const call = {
    key: { sessionId: "sess_1", turnId: "turn_1", callId: "call_1" },
    function: "f",
    arguments: "{}",
    attempt: 1,
    idempotencyKey: "call_x",
    deadline: new Date(),
    signal: new AbortController().signal,
    uncertain: false,
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    tracestate: undefined,
  };
  const inside = await traced(call, () => Promise.resolve(trace.getActiveSpan()?.spanContext().traceId));
  assert.equal(inside, "0af7651916cd43dd8448eb211c80319c");
  await assert.rejects(traced(call, () => Promise.reject(new Error("no"))));
  const spans = exporter.getFinishedSpans();
  assert.deepEqual(
    spans.map((s) => [s.name, s.parentSpanContext?.spanId]),
    [
      ["function f", "b7ad6b7169203331"],
      ["function f", "b7ad6b7169203331"],
    ],
  );
});
