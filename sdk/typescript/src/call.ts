import type { CallKey } from "./wire/dispatch.js";

/** One attempt of a call as its handler sees it. */
export interface Call {
  /** The session, the turn and the call: its name for ever. */
  readonly key: CallKey;
  /** The function's name as the model gave it. */
  readonly function: string;
  /** The very text that the model wrote: every digit of every number, every member in its order. */
  readonly arguments: string;
  /** Counts from 1. */
  readonly attempt: number;
  /** The same for every attempt of the call. Pass it to downstreams that know such keys. */
  readonly idempotencyKey: string;
  /** When the handler's time ends. */
  readonly deadline: Date;
  /** Aborts when the time is over, when the call is cancelled and at the executor's hard stop; its reason tells which. */
  readonly signal: AbortSignal;
  /** An earlier run may have taken place, wholly or in part. */
  readonly uncertain: boolean;
  /** The W3C trace context, undefined without tracing. */
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
}

/** Runs one call. What it returns goes to the model; see Failure, Retry and Uncertain for what it may throw. */
export type Handler<Input> = (input: Input, call: Call) => unknown;

/** What a verify handler found out about an earlier run. Make it by done, notDone or cannotTell. */
export class Verdict {
  private constructor(
    readonly finding: "done" | "not_done" | "cannot_tell",
    readonly output: unknown,
    readonly reason: string,
  ) {}

  /** @internal */
  static of(finding: Verdict["finding"], output: unknown, reason: string): Verdict {
    return new Verdict(finding, output, reason);
  }
}

/** The earlier run took effect. The call succeeds with this output. */
export function done(output?: unknown): Verdict {
  return Verdict.of("done", output, "");
}

/** The earlier run did not take effect and will not do so any more. The handler is run. */
export function notDone(): Verdict {
  return Verdict.of("not_done", undefined, "");
}

/** It could not be found out. The handler is not run; the reason is for operators. */
export function cannotTell(reason: string): Verdict {
  return Verdict.of("cannot_tell", undefined, reason);
}

/**
 * Finds out whether an earlier run of the call took effect, most often by asking a downstream for the idempotency key. It
 * must have no effects itself. An exception, a timeout and a return without a verdict mean that it cannot tell.
 */
export type VerifyHandler<Input> = (input: Input, call: Call) => Verdict | Promise<Verdict>;
