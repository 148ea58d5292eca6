/** Runs handlers without servers: `import { invoke } from "callfan/testing"`. */
import { Attempt } from "./engine/attempt.js";
import { resolveUncertain } from "./engine/delivery.js";
import { Moment } from "./engine/moment.js";
import { Verification } from "./engine/verification.js";
import { ConfigurationError } from "./errors.js";
import type { Executor } from "./executor.js";
import { type Logger, silentLogger } from "./logger.js";
import { type CallKey, type Dispatch, type OnUncertain, idempotencyKey } from "./wire/dispatch.js";
import type { Outcome } from "./wire/outcome.js";

/** A call for a test. Everything has a default. */
export interface TestCall {
  readonly sessionId?: string;
  readonly turnId?: string;
  readonly callId?: string;
  readonly attempt?: number;
  readonly timeoutMs?: number;
  readonly deadline?: Date;
  /** The call may have run: it goes by the function's policy, and may be verified or not run at all. */
  readonly uncertain?: boolean;
  readonly onUncertain?: OnUncertain;
  readonly traceparent?: string;
  /** Cancels the call when it aborts. */
  readonly signal?: AbortSignal;
  /** Default: none. */
  readonly logger?: Logger;
}

/** What would be reported, as the wire would carry it; undefined when nothing would be. */
export type TestOutcome =
  | { readonly success: true; readonly output: string | ReadonlyArray<Record<string, string>> | null }
  | { readonly success: false; readonly error: string; readonly cause?: string }
  | { readonly retry: { readonly reason: string; readonly after_ms: number } }
  | { readonly uncertain: { readonly reason: string } }
  | { readonly released: true };

/**
 * Runs one attempt of a call in this process, with the function's schema, timeout and encoding. The arguments are a value,
 * or the very JSON text that a model would write.
 */
export async function invoke(executor: Executor, name: string, args: string | Record<string, unknown> = {}, call: TestCall = {}): Promise<TestOutcome | undefined> {
  const f = executor.functions.get(name);
  if (f === undefined) throw new ConfigurationError(`the executor has no function ${JSON.stringify(name)}`);
  const logger = call.logger ?? silentLogger;
  const d = dispatchOf(name, typeof args === "string" ? args : JSON.stringify(args), call);
  const never = new Moment();
  const cancelledBy = (running: { cancel(): void }): void => {
    if (call.signal?.aborted) running.cancel();
    else call.signal?.addEventListener("abort", () => running.cancel(), { once: true });
  };
  if (d.uncertain) {
    const end = await resolveUncertain(f, d, async (verifying) => {
      const asked = new Verification(logger, verifying, d, never);
      cancelledBy(asked);
      const verdict = await asked.ending();
      await asked.leave();
      return verdict;
    });
    if (end !== undefined) return wire(end.outcome);
  }
  const attempt = new Attempt(logger, f, d, never, d.uncertain);
  cancelledBy(attempt);
  const end = await attempt.ending();
  await attempt.leave();
  return wire(end.outcome);
}

function dispatchOf(name: string, args: string, call: TestCall): Dispatch {
  const key: CallKey = { sessionId: call.sessionId ?? "sess_test", turnId: call.turnId ?? "turn_test", callId: call.callId ?? "call_test" };
  return {
    key,
    function: name,
    arguments: args,
    attempt: call.attempt ?? 1,
    handover: 1,
    nonce: "1-test",
    resultSubject: "",
    idempotencyKey: idempotencyKey(key),
    ...(call.timeoutMs !== undefined && { timeoutMs: call.timeoutMs }),
    ...(call.deadline !== undefined && { deadlineMs: call.deadline.getTime() }),
    ...(call.traceparent !== undefined && { traceparent: call.traceparent }),
    uncertain: call.uncertain ?? false,
    ...(call.onUncertain !== undefined && { onUncertain: call.onUncertain }),
  };
}

function wire(outcome: Outcome | undefined): TestOutcome | undefined {
  switch (outcome?.kind) {
    case undefined:
    case "deferred":
      return undefined;
    case "success":
      return { success: true, output: JSON.parse(outcome.output) as string | Array<Record<string, string>> | null };
    case "failure":
      return { success: false, error: outcome.error, ...(outcome.cause !== undefined && { cause: outcome.cause }) };
    case "retry":
      return { retry: { reason: outcome.reason, after_ms: outcome.afterMs } };
    case "uncertain":
      return { uncertain: { reason: outcome.reason } };
    case "released":
      return { released: true };
  }
}
