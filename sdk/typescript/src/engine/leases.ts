import type { Logger } from "../logger.js";
import { type Dispatch } from "../wire/dispatch.js";
import { logFields } from "./running.js";

const defaultAckWaitMs = 30_000;
/** How long it takes at most to read what arrived while the process stood still. */
const doubtMs = 1000;

/** Extends the leases of all held calls every third of the lease. */
export class Leases {
  #ackWaitMs = defaultAckWaitMs;
  readonly #held = new Set<Lease>();
  #timer: NodeJS.Timeout | undefined;
  #beatenMs: number | undefined;
  #doubtUntilMs = 0;

  constructor(
    private readonly log: Logger,
    private readonly now: () => number = () => performance.now(),
  ) {}

  start(ackWaitMs: number): void {
    this.#ackWaitMs = ackWaitMs > 0 ? ackWaitMs : defaultAckWaitMs;
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.beat(), this.#ackWaitMs / 3);
    this.beat();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Keeps extending until then, or until it is dropped. */
  hold(d: Dispatch, extend: () => void, untilMs: number): Lease {
    const lease = new Lease(d, extend, untilMs, (l) => this.#held.delete(l));
    this.#held.add(lease);
    return lease;
  }

  /**
   * Whether a call that is about to be started may be with another executor: this process stood still for most of a
   * lease, and what was delivered before is only read now. Its delivery count was true when it was sent.
   */
  doubtful(): boolean {
    this.#alive();
    return this.now() < this.#doubtUntilMs;
  }

  beat(): void {
    this.#alive();
    for (const lease of this.#held) {
      if (Date.now() >= lease.untilMs) continue;
      try {
        lease.extend();
      } catch (error) {
        this.log.debug("lease was not extended", { ...logFields(lease.d), error: String(error) });
      }
    }
  }

  #alive(): void {
    const now = this.now();
    if (this.#beatenMs !== undefined && now - this.#beatenMs > this.#ackWaitMs * 0.9) this.#doubtUntilMs = now + doubtMs;
    this.#beatenMs = now;
  }
}

/** The hold on one delivered call. */
export class Lease {
  constructor(
    readonly d: Dispatch,
    readonly extend: () => void,
    public untilMs: number,
    private readonly forget: (lease: Lease) => void,
  ) {}

  /** Holds it until then, if that is later. */
  holdUntil(ms: number): void {
    this.untilMs = Math.max(this.untilMs, ms);
  }

  drop(): void {
    this.forget(this);
  }
}
