import type { Msg, Subscription } from "@nats-io/transport-node";
import { monotonicMs } from "../engine/beats.js";
import { PullAgain } from "../engine/link.js";
import type { Moment } from "../engine/moment.js";
import { heartbeatMs, pullRequest, pullSilenceMs, pullStatus } from "../wire/pulls.js";
import type { Binding } from "../wire/requests.js";
import type { Connection } from "./connection.js";
import { Transit } from "./transit.js";

/** The consumer does not exist: register first. */
export class Unbound extends Error {
  override readonly name = "Unbound";
}

/** Takes a message, and the longest that it may have been on its way. */
export type Deliver = (msg: Msg, transitMs: number) => void;

const drainMs = 2000;

/** A subscription on which the messages of pulls arrive, one pull after the other. */
class Line {
  readonly inbox: string;
  readonly sub: Subscription;
  readonly down: Moment;
  pulls = 0;
  /** Gets each message while a pull is under way. */
  reader: Deliver | undefined;
  readonly #transit = new Transit(monotonicMs());

  constructor(connection: Connection, deliver: Deliver) {
    this.inbox = connection.inbox();
    this.down = connection.down;
    this.sub = connection.subscribeOnce(`${this.inbox}.*`, (msg) => {
      const { longestMs, ping } = this.#transit.read(monotonicMs());
      // What is behind the answer was sent after the ping. A connection that is lost takes the line with it.
      if (ping) connection.ping().then(() => this.#transit.answered(), () => undefined);
      if (this.reader !== undefined) this.reader(msg, longestMs);
      else if (!isStatus(msg)) deliver(msg, longestMs); // it came for a pull that was given up
    });
  }

  /** The reply subject of a pull that is sent now. */
  nextReply(ackWaitMs: number): string {
    this.#transit.asked(monotonicMs(), 2.5 * heartbeatMs(ackWaitMs));
    return `${this.inbox}.${++this.pulls}`;
  }

  get usable(): boolean {
    return !this.down.happened && !this.sub.isClosed();
  }
}

/** Pulls calls from a pool's durable consumer. Pulls may run side by side. */
export class Puller {
  #idle: Line[] = [];

  constructor(
    private readonly connection: Connection,
    private readonly apiPrefix: string,
  ) {}

  /** Asks for up to n calls. It resolves once all came or the pull ended, and rejects when it was interrupted. */
  async pull(binding: Binding, n: number, until: Moment, deliver: Deliver): Promise<void> {
    if (!(await this.connection.awaitConnected(until))) return;
    const line = this.#line(deliver);
    try {
      await this.#read(line, binding, n, until, deliver);
    } catch (error) {
      await this.#drop(line, deliver);
      throw error;
    }
    if (until.happened) await this.#drop(line, deliver);
    else {
      line.reader = undefined;
      this.#idle.push(line);
    }
  }

  #line(deliver: Deliver): Line {
    for (let line = this.#idle.pop(); line !== undefined; line = this.#idle.pop()) {
      if (line.usable) return line;
      line.sub.unsubscribe();
    }
    return new Line(this.connection, deliver);
  }

  async #read(line: Line, binding: Binding, n: number, until: Moment, deliver: Deliver): Promise<void> {
    const request = `${this.apiPrefix}.CONSUMER.MSG.NEXT.${binding.callsStream}.${binding.consumer}`;
    const reply = line.nextReply(binding.ackWaitMs);
    const release: Array<() => void> = [];
    try {
      await new Promise<void>((resolve, reject) => {
        let left = n;
        let heard = true;
        const again = (why: string): void => reject(new PullAgain(why));
        line.reader = (msg, transitMs) => {
          heard = true;
          if (!isStatus(msg)) {
            deliver(msg, transitMs);
            if (--left <= 0) resolve();
            return;
          }
          if (msg.subject !== reply) return; // about an earlier pull
          const description = msg.headers?.description ?? "";
          const { action, pending } = pullStatus(msg.headers?.code ?? 0, description, msg.headers?.get("Nats-Pending-Messages") ?? "");
          switch (action) {
            case "continue":
              return;
            case "ended":
              // Those that the server counts as sent may still be on their way.
              left -= pending;
              if (left <= 0) resolve();
              return;
            case "register":
              reject(new Unbound(`${binding.consumer} was deleted`));
              return;
            case "pull_again":
              again(`${msg.headers?.code} ${description}`);
              return;
            case "ask_consumer_info":
              this.exists(binding).then(() => again(`nobody answers for ${binding.consumer} yet`), reject);
              return;
            case "fault":
              reject(new Error(`the server refused a pull from ${binding.consumer}: ${description}`));
          }
        };
        const silence = setInterval(() => {
          if (!heard) again(`no heartbeat for ${pullSilenceMs} ms`);
          heard = false;
        }, pullSilenceMs);
        release.push(
          () => clearInterval(silence),
          line.down.on(() => again("the connection changed")),
          until.on(resolve),
          this.connection.onDenied((denied) => {
            if (denied.subject === request || denied.subject === `${line.inbox}.*`) reject(denied);
          }),
        );
        this.connection.publish(request, pullRequest(n, this.connection.maxPayload, binding.ackWaitMs), reply);
      });
    } finally {
      for (const r of release) r();
    }
  }

  /** Ends the subscription, and gives what the server had sent before it knew. */
  async #drop(line: Line, deliver: Deliver): Promise<void> {
    line.reader = (msg, transitMs) => {
      if (!isStatus(msg)) deliver(msg, transitMs);
    };
    if (!line.usable) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, drainMs);
    });
    await Promise.race([line.sub.drain().catch(() => undefined), late, line.down.wait()]);
    clearTimeout(timer);
  }

  /** Looks whether the pool's consumer exists. It rejects with Unbound when not. */
  async exists(binding: Binding): Promise<void> {
    const msg = await this.connection.request(`${this.apiPrefix}.CONSUMER.INFO.${binding.callsStream}.${binding.consumer}`, "", 2000);
    const { error } = msg.json<{ error?: { code?: number; description?: string } }>();
    if (error === undefined) return;
    if (error.code === 404) throw new Unbound(`${binding.consumer} does not exist`);
    throw new PullAgain(`${error.code} ${error.description}`);
  }
}

function isStatus(msg: Msg): boolean {
  return msg.data.length === 0 && (msg.headers?.code ?? 0) > 0;
}

