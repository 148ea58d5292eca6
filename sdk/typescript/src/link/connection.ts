import { type Msg, type NatsConnection, PermissionViolationError, type Status, type Subscription, connect, headers } from "@nats-io/transport-node";
import type { Config } from "../config.js";
import { ConfigurationError, PermissionDenied, errorText } from "../errors.js";
import { Moment, after, pause, unless } from "../engine/moment.js";
import type { Logger } from "../logger.js";
import { type Message } from "../wire/outcome.js";

/** The connection is away; what was asked for may be tried again. */
export class NotConnected extends Error {
  override readonly name = "NotConnected";

  constructor() {
    super("not connected to NATS");
  }
}

const drainMs = 5000;
const mostUnsent = 10_000;

/** A connection to NATS that is made, and made again, for ever. */
export class Connection {
  readonly #log: Logger;
  readonly #stopped = new Moment();
  readonly #subscriptions: Array<{ readonly subject: string; readonly handle: (msg: Msg) => void }> = [];
  readonly #denials = new Set<(denied: PermissionDenied) => void>();
  readonly #unsent: Array<readonly [subject: string, payload: string]> = [];
  #nc: NatsConnection | undefined;
  #up = new Moment();
  #down = new Moment();
  #why = "";
  readonly #kept: Promise<void>;

  constructor(private readonly config: Config) {
    this.#log = config.logger;
    this.#kept = this.#keep();
  }

  /** Happens when the connection that stands now is lost. */
  get down(): Moment {
    return this.#down;
  }

  get connected(): boolean {
    return this.#up.happened && this.#nc !== undefined && !this.#nc.isClosed();
  }

  /** The server's limit for a message with its headers; 0 before the first connection. */
  get maxPayload(): number {
    return this.#nc?.info?.max_payload ?? 0;
  }

  /** Waits for so long at most until the connection stands. */
  async awaitConnectedFor(ms: number): Promise<void> {
    if (this.connected) return;
    const over = new Moment();
    const cancel = after(ms, () => over.fire());
    await this.awaitConnected(over);
    cancel();
  }

  /** Waits until the connection stands; false when the moment came first. */
  async awaitConnected(until: Moment): Promise<boolean> {
    while (!this.connected && !until.happened) {
      await unless(
        until,
        this.#up.wait().then(() => true),
      );
      if (!this.connected) await pause(10, until);
    }
    return !until.happened;
  }

  /** Asks, and waits for the answer. It rejects at once when the connection is lost or the server denies the subject. */
  async request(subject: string, payload: string | Uint8Array, timeoutMs: number, more: Message["headers"] = []): Promise<Msg> {
    const nc = this.#standing();
    const over = new Moment();
    let failure: Error | undefined;
    const denied = (d: PermissionDenied): void => {
      if (d.subject !== subject) return;
      failure = d;
      over.fire();
    };
    this.#denials.add(denied);
    const forget = this.#down.on(() => over.fire());
    try {
      const h = headers();
      for (const [name, value] of more) h.append(name, value);
      const msg = await unless(over, nc.request(subject, payload, more.length > 0 ? { timeout: timeoutMs, headers: h } : { timeout: timeoutMs }));
      if (msg === undefined) throw failure ?? new NotConnected();
      return msg;
    } catch (error) {
      throw deniedOf(error) ?? error;
    } finally {
      this.#denials.delete(denied);
      forget();
    }
  }

  /** Sends without waiting. It throws NotConnected while there is no connection: what is sent then would be lost. */
  publish(subject: string, payload: string, reply?: string): void {
    this.#standing().publish(subject, payload, reply === undefined ? undefined : { reply });
  }

  /** Resolves when the server has answered a ping, and all that it said before that was handed over. */
  async ping(): Promise<void> {
    await this.#standing().flush();
  }

  /** Sends now, or as soon as there is a connection. */
  publishSoon(subject: string, payload: string): void {
    if (this.connected) this.publish(subject, payload);
    else if (this.#unsent.length < mostUnsent) this.#unsent.push([subject, payload]);
  }

  /** Subscribes for as long as this connection stands. */
  subscribeOnce(subject: string, handle: (msg: Msg) => void): Subscription {
    return this.#standing().subscribe(subject, { callback: (error, msg) => void (error === null && handle(msg)) });
  }

  /** Subscribes, on each connection anew. */
  subscribe(subject: string, handle: (msg: Msg) => void): void {
    this.#subscriptions.push({ subject, handle });
    if (this.#nc !== undefined && !this.#nc.isClosed()) this.#subscribe(this.#nc, subject, handle);
  }

  /** Calls back with each subject that the server denies. The function that is returned takes it back. */
  onDenied(denied: (d: PermissionDenied) => void): () => void {
    this.#denials.add(denied);
    return () => this.#denials.delete(denied);
  }

  /** A subject of the user's own for replies. */
  inbox(): string {
    return `${this.config.inboxPrefix}.${crypto.randomUUID().replaceAll("-", "")}`;
  }

  async close(): Promise<void> {
    this.#stopped.fire();
    const nc = this.#nc;
    if (nc !== undefined && !nc.isClosed()) {
      if (this.connected) await within(drainMs, nc.drain());
      if (!nc.isClosed()) await within(drainMs, nc.close());
    }
    await within(drainMs, this.#kept);
  }

  #standing(): NatsConnection {
    if (!this.connected || this.#nc === undefined) throw new NotConnected();
    return this.#nc;
  }

  async #keep(): Promise<void> {
    while (!this.#stopped.happened) {
      let nc: NatsConnection;
      try {
        nc = await connect(this.config.nats());
      } catch (error) {
        this.#stillDown(errorText(error));
        await pause(250 + 500 * Math.random(), this.#stopped);
        continue;
      }
      if (this.#stopped.happened) {
        await nc.close();
        return;
      }
      this.#nc = nc;
      for (const { subject, handle } of this.#subscriptions) this.#subscribe(nc, subject, handle);
      void this.#watch(nc);
      this.#cameUp(nc);
      const reason = await nc.closed();
      this.#wentDown();
      if (!this.#stopped.happened) this.#log.warn("connection to NATS ended; making a new one", { error: reason instanceof Error ? reason.message : undefined });
    }
  }

  async #watch(nc: NatsConnection): Promise<void> {
    for await (const status of nc.status()) this.#changed(nc, status);
  }

  #changed(nc: NatsConnection, status: Status): void {
    switch (status.type) {
      case "disconnect":
        if (!this.#stopped.happened) this.#log.warn("connection to NATS lost; connecting again until it stands", { server: status.server });
        this.#wentDown();
        break;
      case "reconnect":
        this.#cameUp(nc);
        break;
      case "error":
        this.#error(status.error);
        break;
      default:
    }
  }

  #error(error: Error): void {
    const denied = deniedOf(error);
    if (denied === undefined) {
      this.#stillDown(error.message);
      return;
    }
    this.#log.error("the NATS server denied a subject; allow it in this user's permissions", { operation: denied.operation, subject: denied.subject });
    for (const listener of [...this.#denials]) listener(denied);
  }

  #subscribe(nc: NatsConnection, subject: string, handle: (msg: Msg) => void): void {
    nc.subscribe(subject, { callback: (error, msg) => void (error === null && handle(msg)) });
  }

  #cameUp(nc: NatsConnection): void {
    this.#why = "";
    this.#log.info("connected to NATS", { server: nc.getServer(), max_payload: nc.info?.max_payload });
    this.#down = new Moment();
    this.#up.fire();
    for (const [subject, payload] of this.#unsent.splice(0)) this.publishSoon(subject, payload);
  }

  #wentDown(): void {
    if (this.#up.happened) this.#up = new Moment();
    this.#down.fire();
  }

  /** Logs why connecting fails when the reason is a new one. */
  #stillDown(reason: string): void {
    if (reason === this.#why || this.#stopped.happened) return;
    this.#why = reason;
    this.#log.warn("cannot connect to NATS; trying until it works", { servers: this.config.servers, error: reason });
  }
}

/** Checks what can be checked of the way to NATS without a connection, so that a wrong file name ends the program. */
export function checkConnection(config: Config): void {
  try {
    config.nats();
  } catch (error) {
    throw new ConfigurationError(`credentials cannot be used: ${errorText(error)}`);
  }
}

function deniedOf(error: unknown): PermissionDenied | undefined {
  for (let e: unknown = error; e instanceof Error; e = e.cause) {
    if (e instanceof PermissionViolationError) return new PermissionDenied(e.operation === "publish" ? "publish" : "subscribe", e.subject);
    if (e instanceof PermissionDenied) return e;
  }
  return undefined;
}

async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work.catch(() => undefined), late]);
  clearTimeout(timer);
}
