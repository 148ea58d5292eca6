import type { Call, Handler } from "./call.js";
import { type Config, type ExecutorOptions, configOf } from "./config.js";
import type { Registered } from "./engine/registered.js";
import { Worker } from "./engine/worker.js";
import { ConfigurationError, errorText } from "./errors.js";
import { type RawOptions, type TypedOptions, type UntypedOptions, type WorkerOptions, reader, registered, running } from "./functions.js";
import { checkConnection } from "./link/connection.js";
import { NatsLink } from "./link/natslink.js";
import type { OutputOf, StandardSchema } from "./schema.js";
import { Threads } from "./threads/threads.js";
import { Watchdog } from "./threads/watchdog.js";
import { type Traced, tracing, untraced } from "./trace.js";
import type { Definition } from "./wire/requests.js";

/** How an executor runs. */
export interface RunOptions {
  /** Stop on SIGTERM and SIGINT; a second one interrupts running handlers. Default true. */
  readonly signals?: boolean;
  /** Stops the executor when it aborts, as stop() does. */
  readonly signal?: AbortSignal;
}

/** Signals that come so soon after the first are the same one: a terminal and a parent process may both send it. */
const repeatedMs = 500;
/** How long after run() a program may still live on handlers that did not return. */
const leftHandlersMs = 5000;

/** Runs functions. */
export class Executor {
  readonly #options: ExecutorOptions;
  readonly #config: Config;
  readonly #functions = new Map<string, Registered>();
  readonly #threads: Threads[] = [];
  #worker: Worker | undefined;
  #started = false;
  #stopping = false;
  #traced: Traced = untraced;

  /** It connects to nothing before run(). It throws ConfigurationError. */
  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#config = configOf(options);
  }

  /** Adds a function whose arguments are checked and typed by a schema. Arguments that do not fit become a failure that names the member. */
  function<Schema extends StandardSchema>(name: string, options: TypedOptions<Schema>, handler: Handler<OutputOf<Schema>>): this;
  /** Adds a function whose handler gets the arguments as JSON.parse reads them: numbers beyond 2^53 are rounded. */
  function(name: string, options: UntypedOptions, handler: Handler<Record<string, unknown>>): this;
  function(name: string, options: TypedOptions<StandardSchema> | UntypedOptions, handler: Handler<never>): this {
    const read = reader(options.input);
    return this.#add(name, () => registered(name, options as TypedOptions<StandardSchema>, read, running(handler as Handler<unknown>, read)));
  }

  /** Adds a function whose handler gets the very text of the arguments, with every digit of every number. Nothing is checked. */
  rawFunction(name: string, options: RawOptions, handler: Handler<string>): this {
    const read = (call: Call): string => call.arguments;
    return this.#add(name, () => registered(name, options, read, running(handler, read)));
  }

  /**
   * Adds a function whose handler computes: it runs in worker threads, where it stops neither leases nor other calls. The
   * module exports the handler, which gets the arguments and the call. A thread that does not return in time is ended.
   */
  workerFunction(name: string, options: WorkerOptions, module: URL): this {
    return this.#add(name, () => {
      const threads = new Threads(module, options.export ?? "default", options.threads, this.#config.logger);
      const read = reader(options.input);
      const f = registered(name, { ...options, verify: options.verify as never }, read, async (call) => threads.run(await read(call), call));
      this.#threads.push(threads);
      return f;
    });
  }

  /** The declarations of all functions, in the order they were added. */
  get definitions(): readonly Definition[] {
    return [...this.#functions.values()].map((f) => f.definition);
  }

  /**
   * Serves the functions until stop() or a signal: finishes what runs, gives back what was not started. It waits for NATS
   * and for a dispatcher for ever. It rejects with RegistrationRefused or PermissionDenied when nothing can be served.
   */
  async run(options: RunOptions = {}): Promise<void> {
    if (this.#started) throw new ConfigurationError("the executor was run before; make a new one");
    if (this.#functions.size === 0) throw new ConfigurationError("there is no function; add one before run()");
    checkConnection(this.#config);
    this.#started = true;
    this.#traced = await tracing();
    const link = new NatsLink(this.#config);
    const { pool, id, concurrency, stopTimeoutMs, logger } = this.#config;
    const watchdog = new Watchdog({ ...this.#options, id }, logger);
    const worker = new Worker(link, logger, this.#functions, { pool, executorId: id, concurrency, stopTimeoutMs }, watchdog);
    this.#worker = worker;
    if (this.#stopping) worker.soft.fire();
    const stop = (): void => this.stop();
    let firstMs = 0;
    const signalled = (): void => {
      if (firstMs > 0 && Date.now() - firstMs > repeatedMs) worker.interrupt();
      firstMs ||= Date.now();
      stop();
    };
    const names: NodeJS.Signals[] = (options.signals ?? true) ? ["SIGTERM", "SIGINT"] : [];
    for (const name of names) process.on(name, signalled);
    options.signal?.addEventListener("abort", stop, { once: true });
    if (options.signal?.aborted) stop();
    try {
      await worker.serve();
    } finally {
      options.signal?.removeEventListener("abort", stop);
      await link.close();
      await watchdog.close();
      await this.closeThreads();
      for (const name of names) process.off(name, signalled);
    }
    this.#left(worker.abandoned, names.length > 0);
  }

  /** Begins to stop; run() ends when it is done. */
  stop(): void {
    this.#stopping = true;
    this.#worker?.soft.fire();
  }

  /** Handlers that do not return would keep the program alive for ever after a signal. */
  #left(handlers: number, signals: boolean): void {
    if (handlers === 0) return;
    this.#config.logger.warn("handlers did not return; their calls were settled", { handlers });
    if (signals) setTimeout(() => process.exit(), leftHandlersMs).unref();
  }

  /** Ends the threads of worker functions; run() does so at its end. For tests that use callfan/testing. */
  async closeThreads(): Promise<void> {
    await Promise.all(this.#threads.map((threads) => threads.close()));
  }

  /** @internal */
  get functions(): ReadonlyMap<string, Registered> {
    return this.#functions;
  }

  #add(name: string, make: () => Registered): this {
    if (this.#started) throw new ConfigurationError(`function ${JSON.stringify(name)}: the executor runs already; add functions before run()`);
    if (this.#functions.has(name)) throw new ConfigurationError(`function ${JSON.stringify(name)}: there is one of that name`);
    let f: Registered;
    try {
      f = make();
    } catch (error) {
      throw new ConfigurationError(`function ${JSON.stringify(name)}: ${errorText(error)}`);
    }
    this.#functions.set(name, { ...f, run: (call) => this.#traced(call, f.run) });
    return this;
  }
}
