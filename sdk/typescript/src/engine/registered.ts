import type { Call, Verdict } from "../call.js";
import type { Policy } from "../policy.js";
import type { Dispatch, OnUncertain } from "../wire/dispatch.js";
import type { Definition } from "../wire/requests.js";

/** A function with its handlers. */
export interface Registered {
  readonly definition: Definition;
  readonly policy: Policy;
  /** Runs the handler and gives its output as the wire carries it. */
  readonly run: (call: Call) => Promise<string>;
  readonly verify?: (call: Call) => Promise<Verdict>;
}

/** What to do with a call that may have run: as the dispatcher says, or else as the function declares. */
export function choiceOf(f: Registered, d: Dispatch): OnUncertain {
  return d.onUncertain ?? f.policy.onUncertain;
}

/** Whether an executor may find out what became of the call, so that a stop leaves it to its lease for the next one to ask. */
export function verifiable(f: Registered, d: Dispatch): boolean {
  const choice = choiceOf(f, d);
  return choice === "verify" || (choice === "park" && f.verify !== undefined);
}

/** A function with a verify handler. */
export type Verifying = Registered & { readonly verify: NonNullable<Registered["verify"]> };

export function verifies(f: Registered): f is Verifying {
  return f.verify !== undefined;
}
