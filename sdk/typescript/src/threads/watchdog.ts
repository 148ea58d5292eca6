import { Worker } from "node:worker_threads";
import type { ExecutorOptions } from "../config.js";
import { errorText } from "../errors.js";
import type { Logger } from "../logger.js";

/** What the thread of a Watchdog is told. */
export type ToWatchdog = { readonly hold: number; readonly reply: string; readonly untilMs: number } | { readonly drop: number } | { readonly ackWaitMs: number };

export interface WatchdogData {
  readonly options: ExecutorOptions;
  /** When the event loop last extended leases, milliseconds since 1970, in 64 bits. */
  readonly beaten: SharedArrayBuffer;
}

/** Extends leases while the event loop does not. */
export interface Guard {
  /** Tells of a call that is held until then; the number is for drop. */
  hold(reply: string, untilMs: number): number;
  /** Changes how long it is held. */
  extend(id: number, reply: string, untilMs: number): void;
  drop(id: number): void;
  /** The event loop has just extended all leases. */
  beat(): void;
  /** Says how long leases are. */
  lease(ackWaitMs: number): void;
}

/**
 * A thread that extends the leases of held calls when a handler keeps the event loop busy, over a connection of its own,
 * which it makes when that happens first.
 */
export class Watchdog implements Guard {
  readonly #beaten = new BigInt64Array(new SharedArrayBuffer(8));
  readonly #worker: Worker | undefined;
  #last = 0;

  constructor(options: ExecutorOptions, log: Logger) {
    const { logger: _, ...rest } = options;
    this.beat();
    const workerData: WatchdogData = { options: rest, beaten: this.#beaten.buffer as SharedArrayBuffer };
    try {
      this.#worker = new Worker(new URL("./watchdog-entry.js", import.meta.url), { workerData });
    } catch (error) {
      // Functions among the options of the NATS client cannot be given to a thread.
      log.warn("leases are extended by the event loop alone, which handlers can hold up", { error: errorText(error) });
      return;
    }
    this.#worker.unref();
    this.#worker.on("error", (error) => log.warn("leases are extended by the event loop alone from now on; their thread ended", { error: errorText(error) }));
  }

  hold(reply: string, untilMs: number): number {
    this.extend(++this.#last, reply, untilMs);
    return this.#last;
  }

  extend(id: number, reply: string, untilMs: number): void {
    this.#post({ hold: id, reply, untilMs });
  }

  drop(id: number): void {
    this.#post({ drop: id });
  }

  beat(): void {
    Atomics.store(this.#beaten, 0, BigInt(Date.now()));
  }

  lease(ackWaitMs: number): void {
    this.#post({ ackWaitMs });
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #post(message: ToWatchdog): void {
    this.#worker?.postMessage(message);
  }
}
