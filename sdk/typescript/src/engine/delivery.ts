import { InvalidOutcome, type Outcome } from "../wire/outcome.js";
import type { Dispatch } from "../wire/dispatch.js";
import type { Standing } from "../wire/requests.js";
import { PermissionDenied, errorText } from "../errors.js";
import { Attempt } from "./attempt.js";
import { type Ending, dropped, failed, leftToLease, released, uncertain, unknownOutcome } from "./ending.js";
import type { Held } from "./inflight.js";
import type { Lease } from "./leases.js";
import { type Taken, TooLarge } from "./link.js";
import { Moment, after, pause, unless } from "./moment.js";
import { type Registered, type Verifying, choiceOf, verifiable, verifies } from "./registered.js";
import { type Running, logFields } from "./running.js";
import { crashedText, expiredText, mayHaveRunText, noVerifyText, notLookedUpText, notVerifiedText, unknownOutcomeText } from "./texts.js";
import { Verification } from "./verification.js";
import type { Worker } from "./worker.js";

/** How many deliveries of one hand-over may end without an outcome. */
export const crashLimit = 3;
/** Keeps a call that nobody here serves from going round at full speed. */
const unservedMs = 250;
/** How long, at least, an outcome is tried to be reported. */
export const reportForMs = 60_000;
/** The waits between look-ups and between reports that failed, doubling. */
const retryFirstMs = 100;
const retryLastMs = 5000;

/** One delivered call on its way through the executor. */
export class Delivery {
  readonly #entered: Array<Running<unknown>> = [];

  constructor(
    private readonly worker: Worker,
    private readonly taken: Taken,
    private readonly d: Dispatch & { readonly deadlineMs: number },
    private readonly f: Registered | undefined,
    private readonly held: Held,
    private readonly lease: Lease,
  ) {}

  /** Takes the call to its end: run it, or answer it without, report, ack. The order of the last two is what loses no result. */
  async handle(): Promise<void> {
    await this.#settle(await this.#decide());
    const left = await Promise.all(this.#entered.map((entry) => entry.leave()));
    this.worker.abandoned += left.filter(Boolean).length;
  }

  /** Runs the call, unless there is a reason to end it without. */
  async #decide(): Promise<Ending> {
    const { d, f, held, worker } = this;
    if (f === undefined) return await this.#unserved();
    const mayHaveRun = this.#mayHaveRun();
    if (mayHaveRun) {
      const end = await this.#again(f);
      if (end !== undefined) return end;
    } else if (held.noticed) {
      const end = await this.#wanted();
      if (end !== undefined) return end;
    }
    await turn(); // what arrived with this call is held before its handler may keep the event loop busy
    if (held.cancelled) return dropped("cancelled");
    if (worker.soft.happened) return released;
    if (Date.now() >= d.deadlineMs) return failed("deadline", expiredText);
    if (this.lease.doubtful && choiceOf(f, d) !== "rerun") return this.#stale(f);
    const attempt = new Attempt(worker.log, f, d, worker.hard, mayHaveRun);
    this.#entered.push(attempt);
    held.started(() => attempt.cancel());
    return await attempt.ending();
  }

  #mayHaveRun(): boolean {
    return this.taken.deliveries > 1 || this.d.uncertain;
  }

  /** Ends a call that may be with another executor by now: the one that has it decides, or the next one after this lease. */
  #stale(f: Registered): Ending {
    this.worker.log.warn("the process or its connection stood still for about a lease; a call that may be with another executor is not started", {
      ...logFields(this.d),
      transit_ms: this.taken.transitMs,
    });
    return choiceOf(f, this.d) === "fail" ? failed("unknown_outcome", unknownOutcomeText) : leftToLease;
  }

  /** Gives back a call of a function that is not handled here, as after a half-done rollout. */
  async #unserved(): Promise<Ending> {
    this.worker.log.warn("call of a function that this executor does not serve; all processes of a pool must serve the same functions", logFields(this.d));
    await pause(unservedMs, this.worker.soft);
    return this.#mayHaveRun() ? leftToLease : released;
  }

  /** Decides about a call that may have run already; undefined lets it run. */
  async #again(f: Registered): Promise<Ending | undefined> {
    const standing = await this.#lookup();
    if (standing === "answered") return dropped("answered");
    if (standing === "cancelled" || this.held.cancelled) return dropped("cancelled");
    if (this.taken.deliveries > crashLimit) return this.#crashed(f);
    if (standing === undefined) return this.#notLookedUp(f);
    return await resolveUncertain(f, this.d, (verifying) => this.#verify(verifying));
  }

  /** Asks about a call that a cancel notice came before; undefined goes on with it. */
  async #wanted(): Promise<Ending | undefined> {
    const standing = await this.#lookup();
    if (standing === "answered" || standing === "cancelled") return dropped(standing);
    if (standing === undefined && !this.held.cancelled && !this.worker.soft.happened) return failed("deadline", expiredText);
    return undefined; // a cancelled call and a stopping executor are seen next
  }

  /** Ends a call whose earlier deliveries all ended without an outcome. */
  #crashed(f: Registered): Ending {
    if (f.policy.effects === "none") return failed("crashed", crashedText);
    if (choiceOf(f, this.d) === "park") return uncertain(`it crashed its executor, or its executor was lost, ${this.taken.deliveries - 1} times in a row`);
    return failed("crashed", `${crashedText}; ${unknownOutcomeText}`);
  }

  /** Ends a call about which no dispatcher answered before the executor stopped or the call's deadline passed. */
  #notLookedUp(f: Registered): Ending {
    const stopped = this.worker.soft.happened;
    if (choiceOf(f, this.d) === "rerun") return stopped ? released : failed("deadline", expiredText);
    if (stopped && verifiable(f, this.d)) return leftToLease;
    return unknownOutcome(f, this.d, notLookedUpText);
  }

  /** Asks the verify handler, with the lease kept; undefined lets the call run. */
  async #verify(f: Verifying): Promise<Ending | undefined> {
    if (this.held.cancelled) return dropped("cancelled");
    if (this.worker.soft.happened) return leftToLease; // a release would make the call look fresh
    if (Date.now() >= this.d.deadlineMs) return unknownOutcome(f, this.d, notVerifiedText);
    const asked = new Verification(this.worker.log, f, this.d, this.worker.hard);
    this.#entered.push(asked);
    this.held.started(() => asked.cancel());
    return await asked.ending();
  }

  /** Asks until a dispatcher answers; undefined when the call is cancelled, its deadline passes or the executor stops. */
  async #lookup(): Promise<Standing | undefined> {
    const { d, worker } = this;
    const over = new Moment();
    const release = [worker.soft.on(() => over.fire()), after(d.deadlineMs - Date.now(), () => over.fire())];
    this.held.started(() => over.fire());
    try {
      for (let wait = retryFirstMs; !over.happened; wait = Math.min(2 * wait, retryLastMs)) {
        try {
          return await unless(over, worker.link.lookup(d));
        } catch (error) {
          if (wait === retryFirstMs) worker.log.warn("no dispatcher says whether a call is still wanted; asking on", { ...logFields(d), error: errorText(error) });
        }
        await pause(wait, over);
      }
      return undefined;
    } finally {
      for (const r of release) r();
    }
  }

  /** Reports and acks as the ending says. */
  async #settle(end: Ending): Promise<void> {
    if (end.outcome !== undefined && !(await this.#report(end.outcome))) return;
    if (!end.keep) this.taken.ack();
    this.worker.log.debug("call ended", { ...logFields(this.d), reason: end.reason });
  }

  /** Publishes the outcome, again and again while the server does not store it, with the lease held all the while. */
  async #report(outcome: Outcome): Promise<boolean> {
    const { d, worker } = this;
    const untilMs = Math.max(Date.now() + reportForMs, d.deadlineMs);
    this.lease.holdUntil(untilMs);
    const over = new Moment();
    const release = [worker.reporting.on(() => over.fire()), after(untilMs - Date.now(), () => over.fire())];
    let failure: unknown = new Error("the executor stops");
    try {
      for (let wait = retryFirstMs; !over.happened; wait = Math.min(2 * wait, retryLastMs)) {
        try {
          if (await unless(over, worker.link.report(d, outcome).then(() => true))) return true;
        } catch (error) {
          failure = error;
          const instead = this.#instead(outcome, error);
          if (instead !== undefined) {
            outcome = instead;
            continue;
          }
          if (error instanceof PermissionDenied) break;
          if (wait === retryFirstMs) worker.log.warn("outcome was not stored; trying on", { ...logFields(d), error: errorText(error) });
        }
        await pause(wait, over);
      }
    } finally {
      for (const r of release) r();
    }
    worker.log.error("outcome could not be reported; the call will be delivered again", { ...logFields(d), error: errorText(failure) });
    return false;
  }

  /** What is reported in place of an outcome that can never be stored. */
  #instead(outcome: Outcome, error: unknown): Outcome | undefined {
    const cause = outcome.kind === "failure" ? outcome.cause : undefined;
    if (error instanceof TooLarge && cause !== "too_large") return { kind: "failure", cause: "too_large", error: error.message };
    if (error instanceof InvalidOutcome && cause !== "invalid_output") {
      this.worker.log.error("outcome is not valid; the model is told", { ...logFields(this.d), error: error.message });
      return { kind: "failure", cause: "invalid_output", error: "the function's output is not valid" };
    }
    return undefined;
  }
}

async function turn(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}

/** Decides about a call that may have run and is not answered; undefined lets it run. */
export async function resolveUncertain(
  f: Registered,
  d: Dispatch,
  verify: (f: Verifying) => Promise<Ending | undefined>,
): Promise<Ending | undefined> {
  if (choiceOf(f, d) === "rerun") return undefined;
  if (!verifiable(f, d)) return unknownOutcome(f, d, mayHaveRunText);
  return verifies(f) ? await verify(f) : uncertain(noVerifyText);
}

