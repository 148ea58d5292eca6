import type { Logger } from "../logger.js";
import type { Dispatch } from "../wire/dispatch.js";
import { Beats, monotonicMs } from "./beats.js";
import type { Taken } from "./link.js";
import { logFields } from "./running.js";

const defaultAckWaitMs = 30_000;
/** How long it takes at most to read what arrived while the process stood still. */
const doubtMs = 1000;

/** Extends leases while the event loop does not. */
export interface Guard {
  /** Shared with the event loop. */
  readonly beats: Beats;
  /** Tells of a call that is held until then, or changes that. */
  hold(id: number, reply: string, untilMs: number): void;
  drop(id: number): void;
  /** Says how long leases are. */
  lease(ackWaitMs: number): void;
}

/** Extends the leases of all held calls every third of the lease. */
export class Leases {
  #ackWaitMs = defaultAckWaitMs;
  readonly #held = new Set<Lease>();
  readonly #beats: Beats;
  #last = 0;
  #timer: NodeJS.Timeout | undefined;
  /** When the event loop was last seen to turn; until when calls that it reads are doubted. */
  #turnMs: number | undefined;
  #doubtUntilMs = 0;

  constructor(
    private readonly log: Logger,
    private readonly guard?: Guard,
    private readonly now: () => number = monotonicMs,
  ) {
    this.#beats = guard?.beats ?? new Beats();
  }

  start(ackWaitMs: number): void {
    this.#ackWaitMs = ackWaitMs > 0 ? ackWaitMs : defaultAckWaitMs;
    this.guard?.lease(this.#ackWaitMs);
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.beat(), this.#ackWaitMs / 3);
    this.beat();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Keeps extending until then, or until it is dropped. */
  hold(d: Dispatch, taken: Taken, untilMs: number): Lease {
    const id = ++this.#last;
    this.guard?.hold(id, taken.reply, untilMs);
    const lease = new Lease(d, taken, untilMs, this.#readLate(taken), {
      broken: (heldMs) => this.#beats.brokenSince(heldMs, this.now(), this.#ackWaitMs),
      extended: (l) => this.guard?.hold(id, taken.reply, l.untilMs),
      dropped: (l) => {
        this.#held.delete(l);
        this.guard?.drop(id);
      },
    }, this.now());
    this.#held.add(lease);
    return lease;
  }

  /**
   * Whether what is read now may have been delivered most of a lease ago: the process stood still, or a handler kept the
   * event loop busy, or it lay in the network. The timers of a turn of the event loop come before its reads. Of a lease that
   * began when the server sent the call, half is left for what comes until the first renewal arrives.
   */
  #readLate(taken: Taken): boolean {
    const now = this.now();
    if (taken.transitMs > this.#ackWaitMs / 2) return true;
    return now < this.#doubtUntilMs || (this.#turnMs !== undefined && now - this.#turnMs > this.#ackWaitMs * 0.9);
  }

  beat(): void {
    const now = this.now();
    const still = this.#turnMs === undefined ? 0 : now - this.#turnMs;
    this.#turnMs = now;
    if (still > this.#ackWaitMs * 0.9) this.#doubtUntilMs = now + doubtMs;
    if (still > this.#ackWaitMs * 0.5) {
      this.log.warn("the event loop was busy, or the process stood still; handlers that compute belong into worker threads", { still_ms: Math.round(still) });
    }
    this.#beats.beat(now, this.#ackWaitMs);
    for (const lease of this.#held) {
      if (Date.now() >= lease.untilMs) continue;
      try {
        lease.taken.inProgress();
      } catch (error) {
        this.log.debug("lease was not extended", { ...logFields(lease.d), error: String(error) });
      }
    }
  }
}

interface Owner {
  readonly broken: (heldMs: number) => boolean;
  readonly extended: (lease: Lease) => void;
  readonly dropped: (lease: Lease) => void;
}

/** The hold on one delivered call. */
export class Lease {
  constructor(
    readonly d: Dispatch,
    readonly taken: Taken,
    public untilMs: number,
    private readonly readLate: boolean,
    private readonly owner: Owner,
    private readonly heldMs: number,
  ) {}

  /**
   * Whether the call may be with another executor before it is started here: it was read late, and its delivery count was
   * true when it was sent, or its lease was extended too late since.
   */
  get doubtful(): boolean {
    return this.readLate || this.owner.broken(this.heldMs);
  }

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
