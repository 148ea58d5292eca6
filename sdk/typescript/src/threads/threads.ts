import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { Call } from "../call.js";
import { after } from "../engine/moment.js";
import { returnGraceMs } from "../engine/running.js";
import { ConfigurationError, ExecutorStopped, Failure, Retry, Uncertain } from "../errors.js";
import type { Logger } from "../logger.js";
import { InvalidOutput } from "../output.js";
import type { FromThread, ThreadData, ToThread } from "./messages.js";

/** How long a thread may take to return from a call that nobody waits for. */
const threadGraceMs = 500;

/** The threads of one worker function. They are started when they are needed first, and run one call at a time. */
export class Threads {
  readonly #most: number;
  readonly #idle: Worker[] = [];
  readonly #waiting: Array<() => void> = [];
  readonly #all = new Set<Worker>();
  #busy = 0;

  constructor(
    private readonly module: URL,
    private readonly name: string,
    most: number | undefined,
    private readonly log: Logger,
  ) {
    if (!(module instanceof URL)) throw new ConfigurationError('the module is not a URL; use new URL("./worker.js", import.meta.url)');
    if (most !== undefined && !(Number.isInteger(most) && most >= 1)) throw new ConfigurationError(`threads is ${most}; use a whole number from 1`);
    this.#most = most ?? availableParallelism();
  }

  /** Runs a call in a thread, and gives the output as the wire carries it. It rejects with what the handler threw. */
  async run(input: unknown, call: Call): Promise<string> {
    await this.#turn(call.signal);
    let worker: Worker | undefined;
    try {
      worker = this.#idle.pop() ?? this.#start();
      const answer = await this.#ask(worker, input, call);
      if (this.#all.has(worker)) this.#idle.push(worker);
      return outputOf(answer);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#busy--;
      else next(); // it takes this turn
    }
  }

  /** Ends all threads. */
  async close(): Promise<void> {
    await Promise.all([...this.#all].map((worker) => worker.terminate()));
  }

  /** Waits for a thread that is free. */
  async #turn(signal: AbortSignal): Promise<void> {
    if (this.#busy < this.#most) {
      this.#busy++;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const turn = (): void => {
        signal.removeEventListener("abort", gone);
        resolve();
      };
      const gone = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(turn), 1);
        reject(signal.reason);
      };
      this.#waiting.push(turn);
      signal.addEventListener("abort", gone, { once: true });
    });
  }

  #start(): Worker {
    const workerData: ThreadData = { module: this.module.href, export: this.name };
    const worker = new Worker(new URL("./entry.js", import.meta.url), { workerData });
    worker.unref();
    this.#all.add(worker);
    worker.on("exit", () => {
      this.#all.delete(worker);
      const at = this.#idle.indexOf(worker);
      if (at >= 0) this.#idle.splice(at, 1);
    });
    worker.on("error", (error) => this.log.error("thread of a worker function ended by an error", { error: String(error) }));
    return worker;
  }

  async #ask(worker: Worker, input: unknown, call: Call): Promise<FromThread> {
    const { signal, ...rest } = call;
    let stopTimer: () => void = () => undefined;
    const abort = (): void => {
      const graceMs = signal.reason instanceof ExecutorStopped ? returnGraceMs : threadGraceMs;
      worker.postMessage({ abort: signal.reason instanceof Error ? signal.reason.name : "" } satisfies ToThread);
      // A computation that does not look at its signal is ended, so that the thread is of use again.
      stopTimer = after(graceMs, () => {
        this.log.warn("thread does not return and is ended", { function: call.function, call_id: call.key.callId });
        void worker.terminate();
      });
    };
    const listeners: { message?: (answer: FromThread) => void; exit?: (code: number) => void } = {};
    try {
      return await new Promise<FromThread>((resolve, reject) => {
        listeners.message = resolve;
        listeners.exit = (code) => reject(new Error(`the thread ended with status ${code}`));
        worker.on("message", listeners.message);
        worker.on("exit", listeners.exit);
        worker.postMessage({ run: { input, call: rest } } satisfies ToThread);
        if (signal.aborted) abort();
        else signal.addEventListener("abort", abort, { once: true });
      });
    } finally {
      stopTimer();
      signal.removeEventListener("abort", abort);
      if (listeners.message) worker.off("message", listeners.message);
      if (listeners.exit) worker.off("exit", listeners.exit);
    }
  }
}

function outputOf(answer: FromThread): string {
  if ("output" in answer) return answer.output;
  if ("failure" in answer) throw new Failure(answer.failure, answer.cause === undefined ? {} : { cause: answer.cause });
  if ("retry" in answer) throw new Retry(answer.retry, { afterMs: answer.afterMs });
  if ("uncertain" in answer) throw new Uncertain(answer.uncertain);
  if ("invalidOutput" in answer) throw new InvalidOutput(answer.invalidOutput);
  const error = new Error("crash" in answer ? answer.crash : "the thread answered nothing");
  if ("crash" in answer && answer.stack !== undefined) error.stack = answer.stack;
  throw error;
}
