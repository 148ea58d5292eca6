// A queue in this process for tests of the engine.
import { Moment } from "#internal/engine/moment.js";
import type { Link, Taken } from "#internal/engine/link.js";
import { Worker } from "#internal/engine/worker.js";
import { type Executor, type Logger } from "callfan";
import { type CallKey, type Dispatch, idempotencyKey } from "#internal/wire/dispatch.js";
import type { Outcome } from "#internal/wire/outcome.js";
import type { Binding, Standing } from "#internal/wire/requests.js";

export class FakeMessage implements Taken {
  readonly reply = "$JS.ACK.FN_CALLS.pool_test.1.1.1.1.0";
  acked = 0;
  extended = 0;
  terminated: string | undefined;
  readonly over = new Moment();

  constructor(
    readonly content: Dispatch | Error,
    readonly deliveries = 1,
    readonly transitMs = 0,
  ) {}

  inProgress(): void {
    this.extended++;
  }
  ack(): void {
    this.acked++;
    this.over.fire();
  }
  term(reason: string): void {
    this.terminated = reason;
    this.over.fire();
  }
}

export class FakeLink implements Link {
  readonly reports: Array<{ readonly d: Dispatch; readonly outcome: Outcome }> = [];
  readonly reported = new Moment();
  lookups = 0;
  registrations = 0;
  ackWaitMs = 30_000;
  standing: (d: Dispatch) => Promise<Standing> = () => Promise.resolve("pending");
  storing: (outcome: Outcome) => Promise<void> = () => Promise.resolve();
  #cancelled: (key: CallKey, reason: string) => void = () => undefined;
  readonly #queue: Taken[] = [];
  #arrived = new Moment();

  add(message: Taken): void {
    this.#queue.push(message);
    this.#arrived.fire();
  }

  cancel(key: CallKey): void {
    this.#cancelled(key, "the turn has ended");
  }

  register(): Promise<Binding> {
    this.registrations++;
    return Promise.resolve({ callsStream: "FN_CALLS", consumer: "pool_test", ackWaitMs: this.ackWaitMs, maxPayload: 1 << 20, resultPrefix: "fn.result.", refreshMs: 30_000 });
  }

  async pull(_: Binding, n: number, until: Moment, each: (taken: Taken) => void): Promise<void> {
    for (let got = 0; got < n && !until.happened; ) {
      const next = this.#queue.shift();
      if (next !== undefined) {
        got++;
        each(next);
        continue;
      }
      if (this.#arrived.happened) this.#arrived = new Moment();
      const woken = new Moment();
      until.on(() => woken.fire());
      this.#arrived.on(() => woken.fire());
      await woken.wait();
    }
  }

  async lookup(d: Dispatch): Promise<Standing> {
    this.lookups++;
    return await this.standing(d);
  }

  async report(d: Dispatch, outcome: Outcome): Promise<void> {
    await this.storing(outcome);
    this.reports.push({ d, outcome });
    this.reported.fire();
  }

  onCancel(_: readonly string[], cancelled: (key: CallKey, reason: string) => void): void {
    this.#cancelled = cancelled;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** A logger that remembers. */
export class Lines implements Logger {
  readonly lines: string[] = [];
  debug = (): void => undefined;
  info = this.#line("INFO");
  warn = this.#line("WARN");
  error = this.#line("ERROR");

  #line(level: string): (message: string, fields?: object) => void {
    return (message, fields) => this.lines.push(`${level} ${message} ${JSON.stringify(fields ?? {})}`);
  }

  get text(): string {
    return this.lines.join("\n");
  }
}

export interface Bundle extends AsyncDisposable {
  readonly link: FakeLink;
  readonly worker: Worker;
  readonly log: Lines;
  /** Delivers a message, and waits until it is acked. */
  settle(message: FakeMessage): Promise<void>;
}

/** Runs the functions of an executor over a fake link. */
export function serve(ex: Executor, options: { concurrency?: number; stopTimeoutMs?: number; link?: FakeLink } = {}): Bundle {
  const { link = new FakeLink(), concurrency = 8, stopTimeoutMs = 5000 } = options;
  const log = new Lines();
  const worker = new Worker(link, log, ex.functions, { pool: "test", executorId: "test-1", concurrency, stopTimeoutMs });
  const served = worker.serve();
  return {
    link,
    worker,
    log,
    async settle(message) {
      link.add(message);
      await message.over.wait();
    },
    async [Symbol.asyncDispose]() {
      worker.soft.fire();
      await served;
    },
  };
}

let count = 0;

export function dispatch(name: string, more: Partial<Dispatch> = {}): Dispatch {
  const key = { sessionId: "sess_1", turnId: "turn_1", callId: `call_${++count}` };
  return {
    key,
    function: name,
    arguments: "{}",
    attempt: 1,
    handover: 1,
    nonce: "1-0123456789abcdefghijkl",
    resultSubject: `fn.result.${name}.p07`,
    idempotencyKey: idempotencyKey(key),
    deadlineMs: Date.now() + 60_000,
    uncertain: false,
    ...more,
  };
}
