import type { Outcome } from "../wire/outcome.js";
import type { Dispatch } from "../wire/dispatch.js";
import type { Registered } from "./registered.js";
import { choiceOf } from "./registered.js";
import { unknownOutcomeText } from "./texts.js";

/** What is done with a delivered call. */
export interface Ending {
  /** Reported, unless there is none. */
  readonly outcome?: Outcome;
  /** Leaves the call in the stream; otherwise it is acked. */
  readonly keep?: true;
  /** Why nothing is reported. */
  readonly reason: string;
}

export function reported(outcome: Outcome, reason: string = outcome.kind): Ending {
  return { outcome, reason };
}

export function failed(cause: string, error: string): Ending {
  return reported({ kind: "failure", cause, error }, cause);
}

export function uncertain(reason: string): Ending {
  return reported({ kind: "uncertain", reason });
}

export const released: Ending = reported({ kind: "released" });

export function dropped(reason: string): Ending {
  return { reason };
}

/** Leaves the call to the next executor, which gets it as one that may have run. */
export const leftToLease: Ending = { keep: true, reason: "left" };

/** Ends a call that may have run and about which this executor finds out nothing more. why is for operators. */
export function unknownOutcome(f: Registered, d: Dispatch, why: string): Ending {
  return choiceOf(f, d) === "park" ? uncertain(why) : failed("unknown_outcome", unknownOutcomeText);
}
