package io.callfan.executor.internal.trace;

import io.callfan.executor.Call;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.context.propagation.TextMapGetter;
import java.util.List;
import java.util.concurrent.Callable;

/** The parts that need the OpenTelemetry API, which is optional. */
final class Spans {
    private Spans() {}

    static <T> T within(Call call, Callable<T> handler) throws Exception {
        Context parent = GlobalOpenTelemetry.getPropagators().getTextMapPropagator().extract(Context.current(), call, Headers.INSTANCE);
        Span span = GlobalOpenTelemetry.getTracer("callfan", "0.1.0")
                .spanBuilder("function " + call.function())
                .setParent(parent)
                .setSpanKind(SpanKind.CONSUMER)
                .setAttribute("callfan.session_id", call.key().sessionId())
                .setAttribute("callfan.turn_id", call.key().turnId())
                .setAttribute("callfan.call_id", call.key().callId())
                .setAttribute("callfan.function", call.function())
                .setAttribute("callfan.attempt", (long) call.attempt())
                .startSpan();
        try (Scope scope = span.makeCurrent()) {
            return handler.call();
        } catch (Exception | Error e) {
            span.setStatus(StatusCode.ERROR);
            throw e;
        } finally {
            span.end();
        }
    }

    private enum Headers implements TextMapGetter<Call> {
        INSTANCE;

        @Override
        @SuppressWarnings("deprecation") // it has no default yet
        public Iterable<String> keys(Call call) {
            return List.of("traceparent", "tracestate");
        }

        @Override
        public String get(Call call, String name) {
            if (call == null) {
                return null;
            }
            return switch (name) {
                case "traceparent" -> call.traceparent().orElse(null);
                case "tracestate" -> call.tracestate().orElse(null);
                default -> null;
            };
        }
    }
}
