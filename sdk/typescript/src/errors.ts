/** Thrown by a handler: a business failure. Its text goes to the model; the call is never retried. */
export class Failure extends Error {
  override readonly name = "Failure";
  /** A short machine word of [a-z_]{1,32} for counters. Use few distinct words. */
  override readonly cause: string | undefined;

  constructor(text: string, options: { readonly cause?: string } = {}) {
    super(text);
    this.cause = options.cause;
  }
}

/**
 * Thrown by a handler: a technical failure. The model is not told; the dispatcher decides by the function's policy
 * whether the call is run again. When it gives up, the model gets the reason.
 */
export class Retry extends Error {
  override readonly name = "Retry";
  /** The shortest wait, in milliseconds, at most seven days; 0 leaves it to the dispatcher. */
  readonly afterMs: number;

  constructor(reason: string, options: { readonly afterMs?: number } = {}) {
    super(reason);
    this.afterMs = options.afterMs ?? 0;
  }
}

/**
 * Thrown by a handler: its run was lost and may have taken effect, as when a downstream went away before it answered. What
 * follows is the function's onUncertain: a function that may be run again has a technical failure, as by Retry; one that
 * can be verified has its verify handler asked after the lease; of any other the model is told that the outcome is
 * unknown, or an operator decides.
 */
export class Uncertain extends Error {
  override readonly name = "Uncertain";
}

/** The reason of a call's AbortSignal: the run's time is over. The call was answered with a failure. */
export class CallTimedOut extends Error {
  override readonly name = "CallTimedOut";
}

/** The reason of a call's AbortSignal: nobody waits for the result any more. Nothing will be reported. */
export class CallCancelled extends Error {
  override readonly name = "CallCancelled";
}

/** The reason of a call's AbortSignal: the executor's stop timeout is over. A result within a second is still reported. */
export class ExecutorStopped extends Error {
  override readonly name = "ExecutorStopped";
}

/** Options of the executor or of a function that cannot be used. Nothing was added or started. */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
}

/** A dispatcher refuses a function for good; run() ends with it. */
export class RegistrationRefused extends Error {
  override readonly name = "RegistrationRefused";

  constructor(
    readonly functionName: string,
    readonly code: string,
    message: string,
  ) {
    super(`function ${JSON.stringify(functionName)} was refused (${code}): ${message}`);
  }
}

/** The NATS server forbids a subject. */
export class PermissionDenied extends Error {
  override readonly name = "PermissionDenied";

  constructor(
    readonly operation: "publish" | "subscribe",
    readonly subject: string,
  ) {
    super(`the NATS server denied to ${operation} to "${subject}"; allow it in this user's permissions`);
  }
}

/** The text of anything that was thrown. */
export function errorText(error: unknown): string {
  if (error instanceof Error) return error.message || error.name;
  return String(error);
}
