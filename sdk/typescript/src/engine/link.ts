import type { CallKey, Dispatch } from "../wire/dispatch.js";
import type { Outcome } from "../wire/outcome.js";
import type { Binding, Definition, Standing } from "../wire/requests.js";
import type { Moment } from "./moment.js";

/** What a running executor needs of the queue. */
export interface Link {
  /** Declares the functions. It waits while no dispatcher answers; undefined when the moment came first. */
  register(definitions: readonly Definition[], until: Moment): Promise<Binding | undefined>;
  /** Asks for up to n calls and hands each over as it arrives. It returns when all came or the pull ended. */
  pull(binding: Binding, n: number, until: Moment, each: (taken: Taken) => void): Promise<void>;
  /** Asks a dispatcher about the call, once. */
  lookup(d: Dispatch): Promise<Standing>;
  /** Publishes the outcome, once, and waits until the stream stored it. */
  report(d: Dispatch, outcome: Outcome): Promise<void>;
  /** Calls back when a call of one of the functions is cancelled. */
  onCancel(functions: readonly string[], cancelled: (key: CallKey, reason: string) => void): void;
  /** Ends the connection after what was sent has left. */
  close(): Promise<void>;
}

/** A delivered message. */
export interface Taken {
  /** The hand-over, or why the message is no call. */
  readonly content: Dispatch | Error;
  readonly deliveries: number;
  /** The longest that it may have been on its way. */
  readonly transitMs: number;
  /** Where leases are extended. */
  readonly reply: string;
  /** Starts the lease again. */
  inProgress(): void;
  /** Removes the call from the stream. */
  ack(): void;
  /** Removes a message that is no call. */
  term(reason: string): void;
}

/** The outcome is larger than the server takes. The text is for the model. */
export class TooLarge extends Error {
  override readonly name = "TooLarge";

  constructor(size: number, limit: number) {
    super(`result too large (${size} bytes, limit ${limit})`);
  }
}

/** A pull ended early for a reason that passes; the link paces itself. */
export class PullAgain extends Error {
  override readonly name = "PullAgain";
}
