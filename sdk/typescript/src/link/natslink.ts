import { hostname } from "node:os";
import type { Msg } from "@nats-io/transport-node";
import type { Config } from "../config.js";
import { PermissionDenied, RegistrationRefused, errorText } from "../errors.js";
import { type Link, PullAgain, type Taken, TooLarge } from "../engine/link.js";
import { type Moment, pause } from "../engine/moment.js";
import { type CallKey, type Dispatch, type Headers, decodeCall } from "../wire/dispatch.js";
import { Names, deliveriesOf } from "../wire/names.js";
import { type Outcome, encodeOutcome, messageSize } from "../wire/outcome.js";
import {
  type Binding,
  type Definition,
  type Standing,
  lookupRequest,
  parseCancel,
  parseLookupReply,
  parseRegistrationReply,
  registrationRequest,
  termBody,
} from "../wire/requests.js";
import { Connection } from "./connection.js";
import { Puller, Unbound } from "./puller.js";

const registerMs = 10_000;
const lookupMs = 2000;
const publishMs = 5000;
const retryFirstMs = 100;
const registerLastMs = 5000;
const pullLastMs = 2000;
const rebindMs = 500;

/** The link over NATS. */
export class NatsLink implements Link {
  readonly #connection: Connection;
  readonly #names: Names;
  readonly #puller: Puller;
  #pullWaitMs = retryFirstMs;
  #waiting = false;

  constructor(private readonly config: Config) {
    this.#connection = new Connection(config);
    this.#names = new Names(config.prefix);
    this.#puller = new Puller(this.#connection, config.apiPrefix);
  }

  async register(definitions: readonly Definition[], until: Moment): Promise<Binding | undefined> {
    const names = definitions.map((d) => d.name);
    for (;;) {
      let binding: Binding | undefined;
      for (const definition of definitions) {
        binding = await this.#registerOne(definition, names, until);
        if (binding === undefined) return undefined;
      }
      if (this.#waiting) this.config.logger.info("registered", { pool: this.config.pool, functions: names.length });
      this.#waiting = false;
      if (binding === undefined || (await this.#bound(binding, until))) return binding;
      if (!(await pause(rebindMs, until))) return undefined;
    }
  }

  /** Asks until somebody decides. */
  async #registerOne(definition: Definition, names: readonly string[], until: Moment): Promise<Binding | undefined> {
    const { id, version, pool, logger } = this.config;
    const body = registrationRequest(pool, definition, names, { id, language: "typescript", ...(version !== undefined && { version }), host: hostname() });
    const subject = this.#names.register(definition.name);
    for (let wait = retryFirstMs; ; wait = Math.min(2 * wait, registerLastMs)) {
      if (!(await this.#connection.awaitConnected(until))) return undefined;
      let why: string;
      try {
        const reply = parseRegistrationReply((await this.#connection.request(subject, body, registerMs)).data);
        if ("binding" in reply) return reply.binding;
        if ("code" in reply) throw new RegistrationRefused(definition.name, reply.code, reply.message);
        why = reply.again;
      } catch (error) {
        if (error instanceof RegistrationRefused || error instanceof PermissionDenied) throw error;
        why = errorText(error);
      }
      if (!this.#waiting) {
        this.#waiting = true;
        logger.warn("no dispatcher takes the registration; asking until one does", { function: definition.name, subject, error: why });
      }
      if (!(await pause(wait, until))) return undefined;
    }
  }

  /** Whether the consumer of the binding exists; asked until the server says so. */
  async #bound(binding: Binding, until: Moment): Promise<boolean> {
    for (let wait = retryFirstMs; await this.#connection.awaitConnected(until); wait = Math.min(2 * wait, pullLastMs)) {
      try {
        await this.#puller.exists(binding);
        return true;
      } catch (error) {
        if (error instanceof Unbound) return false;
        if (error instanceof PermissionDenied) throw error;
      }
      if (!(await pause(wait, until))) break;
    }
    return false;
  }

  async pull(binding: Binding, n: number, until: Moment, each: (taken: Taken) => void): Promise<void> {
    try {
      await this.#puller.pull(binding, n, until, (msg, transitMs) => each(this.#taken(msg, transitMs)));
      this.#pullWaitMs = retryFirstMs;
    } catch (error) {
      if (error instanceof PullAgain) {
        const wait = this.#pullWaitMs;
        this.#pullWaitMs = Math.min(2 * wait, pullLastMs);
        await pause(wait, until);
      }
      throw error;
    }
  }

  #taken(msg: Msg, transitMs: number): Taken {
    const headers = headersOf(msg);
    let content: Dispatch | Error;
    try {
      content = decodeCall(this.#names, msg.subject, headers, msg.data);
    } catch (error) {
      content = error instanceof Error ? error : new Error(String(error));
    }
    const reply = msg.reply ?? "";
    return {
      content,
      deliveries: deliveriesOf(reply),
      transitMs,
      reply,
      inProgress: () => this.#connection.publish(reply, "+WPI"),
      ack: () => this.#connection.publishSoon(reply, "+ACK"), // a lost one means one more delivery, which is found answered
      term: (reason) => this.#connection.publishSoon(reply, termBody(reason, headers)),
    };
  }

  async lookup(d: Dispatch): Promise<Standing> {
    await this.#connection.awaitConnectedFor(lookupMs);
    const reply = await this.#connection.request(this.#names.outcome(d.function), lookupRequest(d), lookupMs);
    const standing = parseLookupReply(reply.data);
    if (standing === undefined) throw new Error("the dispatcher's answer has no standing");
    return standing;
  }

  async report(d: Dispatch, outcome: Outcome): Promise<void> {
    const message = encodeOutcome(d, outcome, this.config.id);
    await this.#connection.awaitConnectedFor(publishMs);
    const limit = this.#connection.maxPayload;
    const size = messageSize(message);
    if (limit > 0 && size > limit) throw new TooLarge(size, limit);
    const reply = await this.#connection.request(message.subject, message.payload, publishMs, message.headers);
    const ack = reply.json<{ stream?: string; error?: { code?: number; err_code?: number; description?: string } }>();
    if (ack.error?.err_code === 10054) throw new TooLarge(size, limit);
    if (ack.error !== undefined) throw new Error(`the stream refused the outcome: ${ack.error.code} ${ack.error.description}`);
    if (!ack.stream) throw new Error("the stream did not confirm the outcome");
  }

  onCancel(functions: readonly string[], cancelled: (key: CallKey, reason: string) => void): void {
    for (const name of functions) {
      this.#connection.subscribe(this.#names.cancel(name), (msg) => {
        const notice = parseCancel(msg.data);
        if (notice !== undefined) cancelled(notice.key, notice.reason);
      });
    }
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }
}

function headersOf(msg: Msg): Headers {
  const all = new Map<string, string>();
  for (const [name, values] of msg.headers ?? []) all.set(name, values[0] ?? "");
  return all;
}
