import type { Call } from "../call.js";
import { CallCancelled, CallTimedOut, ExecutorStopped } from "../errors.js";
import type { Logger } from "../logger.js";
import type { Dispatch } from "../wire/dispatch.js";
import { after, Moment } from "./moment.js";
import type { Registered } from "./registered.js";

/** How long a handler may take to return after its signal aborted, before its slot is given to another call. */
export const returnGraceMs = 1000;

/** What the code came to. */
export type Returned<T> = { readonly value: T } | { readonly error: unknown };

type Cause = "timeout" | "cancelled" | "stopped";

/** One entry into the user's code, a handler or a verify handler. */
export class Running<T> {
  readonly beganMs = Date.now();
  readonly deadlineMs: number;
  #cause: Cause | undefined;
  #result: Returned<T> | undefined;
  readonly #aborter = new AbortController();
  readonly #aborted = new Moment();
  readonly #returned = new Moment();
  readonly #release: Array<() => void> = [];

  constructor(
    private readonly log: Logger,
    f: Registered,
    readonly d: Dispatch,
    hardStop: Moment,
    uncertain: boolean,
    private readonly handler: "function" | "verify",
    code: (call: Call) => Promise<T>,
  ) {
    const timeoutMs = d.timeoutMs ?? f.policy.timeoutMs;
    this.deadlineMs = Math.min(this.beganMs + timeoutMs, d.deadlineMs ?? Infinity);
    this.#release.push(after(this.deadlineMs - this.beganMs, () => this.#abort("timeout")));
    this.#release.push(hardStop.on(() => this.#abort("stopped")));
    void this.#enter(code, callOf(d, new Date(this.deadlineMs), this.#aborter.signal, uncertain));
  }

  async #enter(code: (call: Call) => Promise<T>, call: Call): Promise<void> {
    try {
      this.#result = { value: await code(call) };
    } catch (error) {
      this.#result = { error };
    }
    this.#returned.fire();
  }

  #abort(cause: Cause): void {
    if (this.#cause !== undefined) return;
    this.#cause = cause;
    this.#aborter.abort(reasonOf(cause));
    this.#aborted.fire();
  }

  /** Nobody waits for the result any more. */
  cancel(): void {
    this.#abort("cancelled");
  }

  get timedOut(): boolean {
    return this.#cause === "timeout";
  }
  get cancelled(): boolean {
    return this.#cause === "cancelled";
  }
  /** The executor's hard stop came. */
  get interrupted(): boolean {
    return this.#cause === "stopped";
  }

  /**
   * Waits for what the code comes to; undefined when it did not return before its time was over, the call was cancelled
   * or, by a grace, the executor stopped.
   */
  async wait(): Promise<Returned<T> | undefined> {
    await either(this.#returned, this.#aborted);
    if (this.#result === undefined && this.interrupted) await this.#grace();
    return this.#result;
  }

  /** Gives up the code after a moment; true when it still did not return. What it returns later is ignored. */
  async leave(): Promise<boolean> {
    for (const release of this.#release) release();
    if (this.#result !== undefined) return false;
    await this.#grace();
    if (this.#result !== undefined) return false;
    this.log.warn("handler does not return; its slot is given to other calls", { ...logFields(this.d), handler: this.handler, cause: this.#cause });
    this.#returned.on(() =>
      this.log.warn("abandoned handler returned; its result is ignored", { ...logFields(this.d), handler: this.handler, late_by_ms: Date.now() - this.deadlineMs }),
    );
    return true;
  }

  async #grace(): Promise<void> {
    const over = new Moment();
    const cancel = after(returnGraceMs, () => over.fire());
    await either(this.#returned, over);
    cancel();
  }
}

async function either(a: Moment, b: Moment): Promise<void> {
  await new Promise<void>((resolve) => {
    a.on(resolve);
    b.on(resolve);
  });
}

function reasonOf(cause: Cause): Error {
  switch (cause) {
    case "timeout":
      return new CallTimedOut("the function's time is over");
    case "cancelled":
      return new CallCancelled("the call was cancelled");
    case "stopped":
      return new ExecutorStopped("the executor stops");
  }
}

function callOf(d: Dispatch, deadline: Date, signal: AbortSignal, uncertain: boolean): Call {
  return {
    key: d.key,
    function: d.function,
    arguments: d.arguments,
    attempt: d.attempt,
    idempotencyKey: d.idempotencyKey,
    deadline,
    signal,
    uncertain,
    traceparent: d.traceparent,
    tracestate: d.tracestate,
  };
}

export function logFields(d: Dispatch): Record<string, unknown> {
  return { session_id: d.key.sessionId, turn_id: d.key.turnId, call_id: d.key.callId, function: d.function, attempt: d.attempt };
}
