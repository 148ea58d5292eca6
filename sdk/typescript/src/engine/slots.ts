import { pullLargest } from "../wire/pulls.js";

/** The number of free slots at which a pull does not wait for more. */
const pullBatch = 16;
/** How long a free slot waits for others to be pulled together. */
const gatherMs = 1;

/** Counts the calls that may still be started, and has them pulled. */
export class Slots {
  #free: number;
  #linger: NodeJS.Timeout | undefined;
  #open = false;
  readonly #worth: number;

  constructor(
    total: number,
    private readonly pull: (n: number) => void,
  ) {
    this.#free = total;
    this.#worth = Math.min(pullBatch, total);
  }

  /** Begins to pull. */
  start(): void {
    this.#open = true;
    this.#take(this.#worth);
  }

  /** Pulls no more. */
  stop(): void {
    this.#open = false;
    clearTimeout(this.#linger);
  }

  release(n: number): void {
    if (n <= 0) return;
    this.#free += n;
    this.#take(this.#worth);
    if (!this.#open || this.#free <= 0 || this.#linger !== undefined) return;
    this.#linger = setTimeout(() => {
      this.#linger = undefined;
      this.#take(1);
    }, gatherMs);
  }

  #take(atLeast: number): void {
    while (this.#open && this.#free > 0 && this.#free >= atLeast) {
      const n = Math.min(this.#free, pullLargest);
      this.#free -= n;
      this.pull(n);
    }
  }
}
