import type { Call } from "./call.js";

/** The parts of @opentelemetry/api that are used. The package is optional, so its types are not. */
interface OpenTelemetry {
  readonly trace: { getTracer(name: string, version?: string): Tracer };
  readonly context: { active(): unknown; with<T>(context: unknown, f: () => T): T };
  readonly propagation: { extract(context: unknown, carrier: Record<string, string>): unknown };
  readonly SpanKind: { readonly CONSUMER: number };
  readonly SpanStatusCode: { readonly ERROR: number };
}

interface Tracer {
  startActiveSpan<T>(name: string, options: { kind: number; attributes: Record<string, string | number> }, context: unknown, f: (span: Span) => T): T;
}

interface Span {
  setStatus(status: { code: number }): void;
  end(): void;
}

/** Runs a handler within a span that continues the call's trace, if the program uses OpenTelemetry. */
export type Traced = <T>(call: Call, run: (call: Call) => Promise<T>) => Promise<T>;

export const untraced: Traced = (call, run) => run(call);

/** Finds @opentelemetry/api, if it is installed. */
export async function tracing(): Promise<Traced> {
  let api: OpenTelemetry;
  try {
    const name = "@opentelemetry/api";
    api = (await import(name)) as OpenTelemetry;
  } catch {
    return untraced;
  }
  const tracer = api.trace.getTracer("callfan", "0.1.0");
  return async (call, run) => {
    const carrier: Record<string, string> = {};
    if (call.traceparent !== undefined) carrier["traceparent"] = call.traceparent;
    if (call.tracestate !== undefined) carrier["tracestate"] = call.tracestate;
    const parent = api.propagation.extract(api.context.active(), carrier);
    const attributes = {
      "callfan.session_id": call.key.sessionId,
      "callfan.turn_id": call.key.turnId,
      "callfan.call_id": call.key.callId,
      "callfan.function": call.function,
      "callfan.attempt": call.attempt,
    };
    return await tracer.startActiveSpan(`function ${call.function}`, { kind: api.SpanKind.CONSUMER, attributes }, parent, async (span) => {
      try {
        return await run(call);
      } catch (error) {
        span.setStatus({ code: api.SpanStatusCode.ERROR });
        throw error;
      } finally {
        span.end();
      }
    });
  };
}
