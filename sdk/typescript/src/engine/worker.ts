import { errorText, PermissionDenied } from "../errors.js";
import type { Logger } from "../logger.js";
import type { Dispatch } from "../wire/dispatch.js";
import type { Binding } from "../wire/requests.js";
import { Delivery, crashLimit, reportForMs } from "./delivery.js";
import { Inflight } from "./inflight.js";
import { type Guard, Leases } from "./leases.js";
import { type Link, PullAgain, type Taken } from "./link.js";
import { Moment, after, pause } from "./moment.js";
import type { Registered } from "./registered.js";
import { logFields, returnGraceMs } from "./running.js";
import { Slots } from "./slots.js";

/** How often to register again when the binding does not say, and the least time between two registrations. */
const defaultRefreshMs = 30_000;
const rebindPauseMs = 1000;
/** How long outcomes may still be reported after the hard stop. */
const reportGraceMs = 5000;
/** The waits after a pull that failed, doubling. */
const pullRetryFirstMs = 100;
const pullRetryLastMs = 5000;

/** How a worker runs. */
export interface WorkerOptions {
  readonly pool: string;
  readonly executorId: string;
  readonly concurrency: number;
  readonly stopTimeoutMs: number;
}

/** One run of an executor over a link. */
export class Worker {
  /** No more calls are started. */
  readonly soft = new Moment();
  /** Handlers are interrupted. */
  readonly hard = new Moment();
  /** Outcomes are given up. */
  readonly reporting = new Moment();
  /** How many handlers did not return. */
  abandoned = 0;
  readonly leases: Leases;
  readonly #inflight = new Inflight();
  readonly #slots: Slots;
  #binding: Binding | undefined;
  #rebind = new Moment();
  #failures = 0;
  readonly #impatient = new Moment();
  readonly #busy = new Set<Promise<void>>();

  constructor(
    readonly link: Link,
    readonly log: Logger,
    private readonly functions: ReadonlyMap<string, Registered>,
    private readonly options: WorkerOptions,
    guard?: Guard,
  ) {
    this.leases = new Leases(log, guard);
    this.#slots = new Slots(options.concurrency, (n) => this.#track(this.#pull(n)));
  }

  /** Registers, runs calls until the soft stop, and stops in order. It throws when the functions are refused. */
  async serve(): Promise<void> {
    const definitions = [...this.functions.values()].map((f) => f.definition);
    if (!(await this.#register())) return; // stopped before anything began
    this.link.onCancel(
      definitions.map((f) => f.name),
      (key, reason) => {
        if (!this.#inflight.cancel(key)) return;
        this.log.info("call cancelled", { session_id: key.sessionId, turn_id: key.turnId, call_id: key.callId, reason });
      },
    );
    this.log.info("executor serves", {
      pool: this.options.pool,
      functions: definitions.length,
      concurrency: this.options.concurrency,
      executor_id: this.options.executorId,
    });
    const registered = this.#keepRegistered();
    this.#slots.start();
    try {
      await this.soft.wait();
      await this.#stop();
    } finally {
      this.leases.stop();
      await registered;
    }
  }

  /** Interrupts running handlers without waiting for the stop timeout. */
  interrupt(): void {
    this.#impatient.fire();
  }

  /** Waits for the calls in hand, and interrupts them after the stop timeout. */
  async #stop(): Promise<void> {
    this.log.info("executor stops", { pool: this.options.pool, stop_timeout_ms: this.options.stopTimeoutMs });
    this.#slots.stop();
    if (await this.#settled(this.options.stopTimeoutMs, this.#impatient)) return;
    this.log.warn("running handlers are interrupted", { stop_timeout_over: !this.#impatient.happened });
    this.hard.fire();
    if (await this.#settled(returnGraceMs + reportGraceMs)) return;
    this.reporting.fire();
    await this.#settled(returnGraceMs + reportGraceMs);
  }

  async #settled(withinMs: number, impatient: Moment = new Moment()): Promise<boolean> {
    const over = new Moment();
    const cancel = after(withinMs, () => over.fire());
    impatient.on(() => over.fire());
    const wait = over.wait();
    while (this.#busy.size > 0 && !over.happened) await Promise.race([wait, Promise.all(this.#busy)]);
    cancel();
    return this.#busy.size === 0;
  }

  #track(work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => this.log.error("the executor has a fault; please report it", { error: errorText(error), stack: error instanceof Error ? error.stack : undefined }))
      .finally(() => this.#busy.delete(tracked));
    this.#busy.add(tracked);
  }

  async #register(): Promise<boolean> {
    const binding = await this.link.register(
      [...this.functions.values()].map((f) => f.definition),
      this.soft,
    );
    if (binding === undefined) return false;
    if (binding.ackWaitMs !== this.#binding?.ackWaitMs) this.leases.start(binding.ackWaitMs);
    this.#binding = binding;
    return true;
  }

  /** Registers again as often as the binding says, and when pulls fail. */
  async #keepRegistered(): Promise<void> {
    while (!this.soft.happened) {
      const refreshMs = (this.#binding?.refreshMs || defaultRefreshMs) * (0.9 + 0.2 * Math.random());
      const woken = new Moment();
      const forget = [this.soft.on(() => woken.fire()), this.#rebind.on(() => woken.fire())];
      await pause(refreshMs, woken);
      for (const f of forget) f();
      this.#rebind = new Moment();
      if (this.soft.happened) return;
      try {
        await this.#register();
      } catch (error) {
        this.log.error("functions could not be registered again; the earlier registration is used on", { error: errorText(error) });
      }
      await pause(rebindPauseMs, this.soft);
    }
  }

  async #pull(n: number): Promise<void> {
    const binding = this.#binding;
    let got = 0;
    try {
      if (binding !== undefined) {
        await this.link.pull(binding, n, this.soft, (taken) => {
          got++;
          this.#track(this.#handle(taken).finally(() => this.#slots.release(1)));
        });
      }
      if (this.#failures > 0 && !this.soft.happened) this.log.info("calls are pulled again");
      this.#failures = 0;
    } catch (error) {
      if (!this.soft.happened) await this.#pullFailed(error);
    }
    this.#slots.release(n - got);
  }

  /** Waits, longer with every failure in a row, and has the functions registered again: the consumer may be gone. */
  async #pullFailed(error: unknown): Promise<void> {
    this.#rebind.fire();
    if (error instanceof PullAgain) return;
    const n = this.#failures++;
    if (n === 0) this.log.warn("calls cannot be pulled; trying on", { error: errorText(error), denied: error instanceof PermissionDenied ? error.subject : undefined });
    await pause(Math.min(pullRetryFirstMs * 2 ** Math.min(n, 10), pullRetryLastMs), this.soft);
  }

  async #handle(taken: Taken): Promise<void> {
    const d = taken.content;
    if (d instanceof Error) {
      this.#invalid(taken, d);
      return;
    }
    const held = this.#inflight.add(d);
    if (held === undefined) {
      // The run in hand extends this delivery's lease as well, and its ack removes it.
      this.log.warn("call delivered again while it runs here", { ...logFields(d), deliveries: taken.deliveries });
      return;
    }
    const f = this.functions.get(d.function);
    const bounded = { ...d, deadlineMs: d.deadlineMs ?? Date.now() + reportForMs + (d.timeoutMs ?? f?.policy.timeoutMs ?? 0) };
    const lease = this.leases.hold(d, taken, bounded.deadlineMs);
    try {
      await new Delivery(this, taken, bounded satisfies Dispatch, f, held, lease).handle();
    } finally {
      lease.drop();
      this.#inflight.remove(d);
    }
  }

  /** Leaves a message that is no call to its lease, since a newer executor may understand it, and removes it after the crash limit. */
  #invalid(taken: Taken, why: Error): void {
    const removed = taken.deliveries > crashLimit;
    this.log.error("message is not a call", { error: why.message, deliveries: taken.deliveries, removed });
    if (removed) taken.term(why.message);
  }
}
