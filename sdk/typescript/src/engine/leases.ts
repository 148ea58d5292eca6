import type { Logger } from "../logger.js";
import { type Dispatch } from "../wire/dispatch.js";
import type { Guard } from "../threads/watchdog.js";
import type { Taken } from "./link.js";
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
    private readonly guard?: Guard,
    private readonly now: () => number = () => performance.now(),
  ) {}

  start(ackWaitMs: number): void {
    this.#ackWaitMs = ackWaitMs > 0 ? ackWaitMs : defaultAckWaitMs;
    clearInterval(this.#timer);
    this.guard?.lease(this.#ackWaitMs);
    this.#timer = setInterval(() => this.beat(), this.#ackWaitMs / 3);
    this.beat();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Keeps extending until then, or until it is dropped. */
  hold(d: Dispatch, taken: Taken, untilMs: number): Lease {
    const guarded = this.guard?.hold(taken.reply, untilMs);
    const lease = new Lease(d, taken, untilMs, {
      extended: (l) => guarded !== undefined && this.guard?.extend(guarded, taken.reply, l.untilMs),
      dropped: (l) => {
        this.#held.delete(l);
        if (guarded !== undefined) this.guard?.drop(guarded);
      },
    });
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
    this.guard?.beat();
    for (const lease of this.#held) {
      if (Date.now() >= lease.untilMs) continue;
      try {
        lease.taken.inProgress();
      } catch (error) {
        this.log.debug("lease was not extended", { ...logFields(lease.d), error: String(error) });
      }
    }
  }

  #alive(): void {
    const now = this.now();
    const still = this.#beatenMs === undefined ? 0 : now - this.#beatenMs;
    if (still > this.#ackWaitMs * 0.9) this.#doubtUntilMs = now + doubtMs;
    if (still > this.#ackWaitMs * 0.5) this.log.warn("the event loop was busy, or the process stood still; handlers that compute belong into worker threads", { still_ms: Math.round(still) });
    this.#beatenMs = now;
  }
}

/** The hold on one delivered call. */
export class Lease {
  constructor(
    readonly d: Dispatch,
    readonly taken: Taken,
    public untilMs: number,
    private readonly owner: { readonly extended: (lease: Lease) => void; readonly dropped: (lease: Lease) => void },
  ) {}

  /** Holds it until then, if that is later. */
  holdUntil(ms: number): void {
    if (ms <= this.untilMs) return;
    this.untilMs = ms;
    this.owner.extended(this);
  }

  drop(): void {
    this.owner.dropped(this);
  }
}
