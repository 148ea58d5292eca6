/** Milliseconds of a clock that never jumps and is the same in all threads of the process. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** The part of a lease after which nobody may rely on it. */
const worn = 0.9;

/** When held leases were extended last, by whichever thread, and whether they may have run out in between. */
export class Beats {
  /** [when leases were extended last, when they were extended too late last] */
  readonly #at: BigInt64Array;

  constructor(readonly buffer: ArrayBufferLike = new SharedArrayBuffer(16)) {
    this.#at = new BigInt64Array(buffer);
  }

  get lastMs(): number {
    return Number(Atomics.load(this.#at, 0));
  }

  /** Leases are extended now, or there are none yet. */
  beat(nowMs: number, ackWaitMs: number): void {
    const before = Number(Atomics.exchange(this.#at, 0, BigInt(Math.trunc(nowMs))));
    if (before > 0 && nowMs - before > ackWaitMs * worn) Atomics.store(this.#at, 1, BigInt(Math.trunc(nowMs)));
  }

  /** Whether a lease that was held at that moment may have run out since. */
  brokenSince(heldMs: number, nowMs: number, ackWaitMs: number): boolean {
    const late = Number(Atomics.load(this.#at, 1));
    return (late > 0 && heldMs <= late) || nowMs - Math.max(this.lastMs, heldMs) > ackWaitMs * worn;
  }
}
