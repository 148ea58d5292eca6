import { Verdict } from "../call.js";
import { Failure, Retry, Uncertain, errorText } from "../errors.js";
import type { Logger } from "../logger.js";
import { InvalidOutput, encodeOutput } from "../output.js";
import type { Dispatch } from "../wire/dispatch.js";
import { stackOf } from "./attempt.js";
import { type Ending, dropped, failed, leftToLease, reported, uncertain } from "./ending.js";
import type { Moment } from "./moment.js";
import type { Verifying } from "./registered.js";
import { Running, logFields } from "./running.js";
import { durationText } from "./texts.js";

/** One run of a verify handler. */
export class Verification extends Running<Verdict> {
  constructor(
    private readonly logger: Logger,
    f: Verifying,
    d: Dispatch,
    hardStop: Moment,
  ) {
    super(logger, f, d, hardStop, true, "verify", f.verify);
  }

  /** Waits for the verdict; undefined lets the call run. */
  async ending(): Promise<Ending | undefined> {
    const result = await this.wait();
    const verdict = result !== undefined && "value" in result && result.value instanceof Verdict ? result.value : undefined;
    if (this.cancelled) return dropped("cancelled");
    if (verdict !== undefined && verdict.finding !== "cannot_tell") {
      this.logger.info("uncertain call was verified", { ...logFields(this.d), verdict: verdict.finding });
      return verdict.finding === "not_done" ? undefined : success(verdict.output);
    }
    if (this.interrupted) return leftToLease;
    if (result === undefined || this.timedOut) return uncertain(`the verify handler did not answer within ${durationText(this.deadlineMs - this.beganMs)}`);
    if ("error" in result) {
      this.logger.error("verify handler failed", { ...logFields(this.d), error: errorText(result.error), stack: stackOf(result.error) });
      const told = [Failure, Retry, Uncertain].some((told) => result.error instanceof told) ? `: ${errorText(result.error)}` : "";
      return uncertain(`the verify handler failed${told}`);
    }
    this.logger.warn("uncertain call could not be verified", logFields(this.d));
    return uncertain(verdict?.reason || "the verify handler could not tell");
  }
}

function success(output: unknown): Ending {
  try {
    return reported({ kind: "success", output: encodeOutput(output) }, "verified");
  } catch (error) {
    if (error instanceof InvalidOutput) return failed("invalid_output", error.message);
    throw error;
  }
}
