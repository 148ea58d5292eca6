import { Failure, Retry, Uncertain, errorText } from "../errors.js";
import type { Logger } from "../logger.js";
import { InvalidOutput } from "../output.js";
import type { Dispatch } from "../wire/dispatch.js";
import { type Ending, dropped, failed, leftToLease, released, reported, unknownOutcome } from "./ending.js";
import type { Moment } from "./moment.js";
import { type Registered, choiceOf, verifiable, verifies } from "./registered.js";
import { Running, logFields } from "./running.js";
import { durationText, interruptedText, panicText, silentFailureText } from "./texts.js";

/** One run of a handler. */
export class Attempt extends Running<string> {
  constructor(
    private readonly logger: Logger,
    private readonly f: Registered,
    d: Dispatch,
    hardStop: Moment,
    uncertain: boolean,
  ) {
    super(logger, f, d, hardStop, uncertain, "function", f.run);
  }

  /** Waits for what the attempt comes to. */
  async ending(): Promise<Ending> {
    const result = await this.wait();
    if (this.cancelled) return dropped("cancelled");
    if (result !== undefined && "value" in result) return reported({ kind: "success", output: result.value });
    if (this.interrupted) return this.#cutOff(); // the error, if there is one, is most likely the signal's
    if (result === undefined || this.timedOut) return this.#late();
    return this.#thrown(result.error);
  }

  #thrown(error: unknown): Ending {
    if (error instanceof Retry) return reported({ kind: "retry", reason: textOf(error), afterMs: error.afterMs });
    if (error instanceof Uncertain) return this.#lost(textOf(error));
    if (error instanceof Failure) {
      return reported({ kind: "failure", error: textOf(error), ...(error.cause !== undefined && { cause: error.cause }) }, error.cause ?? "handler");
    }
    if (error instanceof InvalidOutput) return failed("invalid_output", error.message);
    this.logger.error("function crashed", { ...logFields(this.d), error: errorText(error), stack: stackOf(error) });
    return failed("panic", panicText);
  }

  /** What may be run again is retried, what can be verified is left to its lease, of any other the outcome is unknown. */
  #lost(why: string): Ending {
    if (choiceOf(this.f, this.d) === "rerun") return reported({ kind: "retry", reason: why, afterMs: 0 });
    return verifiable(this.f, this.d) && verifies(this.f) ? leftToLease : unknownOutcome(this.f, this.d, why);
  }

  #late(): Ending {
    const tookMs = this.deadlineMs - this.beganMs;
    if (this.deadlineMs === this.d.deadlineMs) return failed("deadline", `timed out after ${durationText(tookMs)}, at the call's deadline`);
    return failed("timeout", `timed out after ${durationText(tookMs)}`);
  }

  /** What may be run again is given back, what can be verified is left to its lease, of any other the outcome is unknown. */
  #cutOff(): Ending {
    if (choiceOf(this.f, this.d) === "rerun") return released;
    return verifiable(this.f, this.d) ? leftToLease : unknownOutcome(this.f, this.d, interruptedText);
  }
}

function textOf(error: Error): string {
  return error.message.trim() === "" ? silentFailureText : error.message;
}

/** The stack with those of its causes. */
export function stackOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const cause = error.cause instanceof Error ? `\ncaused by ${stackOf(error.cause)}` : "";
  return (error.stack ?? "") + cause;
}
