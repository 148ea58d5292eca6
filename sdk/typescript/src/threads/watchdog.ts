import { Worker } from "node:worker_threads";
import type { ExecutorOptions } from "../config.js";
import { Beats } from "../engine/beats.js";
import type { Guard } from "../engine/leases.js";
import { errorText } from "../errors.js";
import type { Logger } from "../logger.js";

/** What the thread of a Watchdog is told, several at once. */
export type ToWatchdog = { readonly hold: number; readonly reply: string; readonly untilMs: number } | { readonly drop: number } | { readonly ackWaitMs: number };

export interface WatchdogData {
  readonly options: ExecutorOptions;
  /** Of Beats. */
  readonly beats: ArrayBufferLike;
}

/**
 * A thread that extends the leases of held calls when a handler keeps the event loop busy, over a connection of its own,
 * which it makes when that happens first.
 */
export class Watchdog implements Guard {
  readonly beats = new Beats();
  readonly #worker: Worker | undefined;
  readonly #unsent: ToWatchdog[] = [];

  constructor(options: ExecutorOptions, log: Logger) {
    const { logger: _, ...rest } = options;
    const workerData: WatchdogData = { options: rest, beats: this.beats.buffer };
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

  hold(id: number, reply: string, untilMs: number): void {
    this.#post({ hold: id, reply, untilMs });
  }

  drop(id: number): void {
    this.#post({ drop: id });
  }

  lease(ackWaitMs: number): void {
    this.#post({ ackWaitMs });
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  /** Messages go together, before the handlers of this turn of the event loop are entered: Delivery waits for the same. */
  #post(message: ToWatchdog): void {
    if (this.#worker === undefined) return;
    if (this.#unsent.length === 0) setImmediate(() => this.#worker?.postMessage(this.#unsent.splice(0)));
    this.#unsent.push(message);
  }
}
