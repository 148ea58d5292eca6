import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { credsAuthenticator, nkeyAuthenticator, type NodeConnectionOptions, tokenAuthenticator, usernamePasswordAuthenticator } from "@nats-io/transport-node";
import { ConfigurationError } from "./errors.js";
import { type Logger, jsonLogger } from "./logger.js";
import { type Duration, milliseconds } from "./policy.js";
import { executorName } from "./wire/outcome.js";

/** Describes an executor. */
export interface ExecutorOptions {
  /** The name of the deployment, 1 to 64 of [A-Za-z0-9_-]. All processes of a pool must serve the same functions. */
  readonly pool: string;
  /** Addresses of NATS. Default NATS_URL, or nats://127.0.0.1:4222. */
  readonly servers?: string | readonly string[];
  /**
   * How to prove who this is. Default: NATS_CREDS, NATS_NKEY, NATS_USER with NATS_PASSWORD, or NATS_TOKEN; the
   * last two secrets also from the files that NATS_PASSWORD_FILE and NATS_TOKEN_FILE name.
   */
  readonly credsFile?: string;
  readonly nkeyFile?: string;
  readonly user?: string;
  readonly password?: string;
  readonly token?: string;
  /** More options of the NATS client, which win over all others: tls, for example. Default for tls: NATS_CA, NATS_CERT, NATS_KEY. */
  readonly nats?: NodeConnectionOptions;
  /** What the subjects of the installation begin with. Default CALLFAN_PREFIX, or "fn". */
  readonly prefix?: string;
  /** Where replies arrive. Default CALLFAN_NATS_INBOX_PREFIX, or "_INBOX". */
  readonly inboxPrefix?: string;
  /** The subject prefix of the JetStream API. Default CALLFAN_NATS_API_PREFIX, or "$JS.API". */
  readonly apiPrefix?: string;
  /** How many calls run at once. Default 32. */
  readonly concurrency?: number;
  /** Names this process for operators: at most 128 bytes of printable characters. Default: host, process and four characters. */
  readonly id?: string;
  /** The version of the program, for operators. */
  readonly version?: string;
  /** How long running handlers may go on after a stop. Keep it below the time that the platform gives. Default 25 s. */
  readonly stopTimeout?: Duration;
  /** Default: JSON lines on standard error. */
  readonly logger?: Logger;
}

/** Options that were checked, with all defaults. */
export interface Config {
  readonly pool: string;
  readonly prefix: string;
  readonly inboxPrefix: string;
  readonly apiPrefix: string;
  readonly concurrency: number;
  readonly id: string;
  readonly version: string | undefined;
  readonly stopTimeoutMs: number;
  readonly logger: Logger;
  /** Made anew for each connection, so that files of credentials may change. */
  readonly nats: () => NodeConnectionOptions;
  readonly servers: readonly string[];
}

const poolName = /^[A-Za-z0-9_-]{1,64}$/;
const prefixName = /^[A-Za-z0-9_-]{1,32}$/;

export function configOf(options: ExecutorOptions, env: Readonly<Record<string, string | undefined>> = process.env): Config {
  const { pool, concurrency = 32 } = options;
  const prefix = options.prefix ?? (env["CALLFAN_PREFIX"] || "fn");
  const id = options.id ?? defaultId();
  if (!poolName.test(pool ?? "")) throw new ConfigurationError(`pool is ${JSON.stringify(pool)}; name the deployment with 1 to 64 of A-Z a-z 0-9 _ -`);
  if (!prefixName.test(prefix)) throw new ConfigurationError(`prefix is ${JSON.stringify(prefix)}; use 1 to 32 of A-Z a-z 0-9 _ -`);
  if (!Number.isInteger(concurrency) || concurrency < 1) throw new ConfigurationError(`concurrency is ${concurrency}; use a whole number from 1`);
  if (id === "" || executorName(id) !== id) throw new ConfigurationError(`id is ${JSON.stringify(id)}; use at most 128 bytes of printable characters, or none`);
  const stopTimeoutMs = milliseconds(options.stopTimeout ?? 25_000);
  if (stopTimeoutMs === undefined) throw new ConfigurationError(`stopTimeout is ${JSON.stringify(options.stopTimeout)}; use milliseconds, or a text such as "25s"`);
  const servers = serversOf(options.servers ?? (env["NATS_URL"] || "nats://127.0.0.1:4222"));
  const inboxPrefix = options.inboxPrefix ?? (env["CALLFAN_NATS_INBOX_PREFIX"] || "_INBOX");
  return {
    pool,
    prefix,
    inboxPrefix,
    apiPrefix: options.apiPrefix ?? (env["CALLFAN_NATS_API_PREFIX"] || "$JS.API"),
    concurrency,
    id,
    version: options.version,
    stopTimeoutMs,
    logger: options.logger ?? jsonLogger,
    servers: servers.map((server) => server.replace(/\/\/[^@/]*@/, "//")),
    nats: () => ({
      ...tlsOf(env),
      ...identityOf(options, env, servers),
      servers: [...servers],
      inboxPrefix,
      name: `executor ${pool} ${id}`,
      timeout: 5000,
      reconnect: true,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 250,
      reconnectJitter: 500,
      reconnectJitterTLS: 500,
      ignoreAuthErrorAbort: true,
      pingInterval: 5000,
      maxPingOut: 2,
      noAsyncTraces: true,
      ...options.nats,
    }),
  };
}

function serversOf(servers: string | readonly string[]): string[] {
  const list = (typeof servers === "string" ? servers.split(",") : [...servers]).map((server) => server.trim()).filter((server) => server !== "");
  for (const server of list) {
    const scheme = /^([a-z0-9+.-]+):\/\//i.exec(server)?.[1]?.toLowerCase();
    if (scheme !== undefined && scheme !== "nats" && scheme !== "tls") throw new ConfigurationError(`NATS is not reached by ${scheme}; use nats:// or tls://`);
  }
  if (list.length === 0) throw new ConfigurationError("servers is empty; give an address of NATS, such as nats://127.0.0.1:4222");
  return list;
}

/** Credentials: those of the options, else those of the environment, else those in an address. */
function identityOf(options: ExecutorOptions, env: Readonly<Record<string, string | undefined>>, servers: readonly string[]): NodeConnectionOptions {
  const given = options.credsFile !== undefined || options.nkeyFile !== undefined || options.user !== undefined || options.token !== undefined;
  const from = given
    ? options
    : {
        credsFile: env["NATS_CREDS"],
        nkeyFile: env["NATS_NKEY"],
        user: env["NATS_USER"],
        password: env["NATS_PASSWORD"] || secret(env["NATS_PASSWORD_FILE"]),
        token: env["NATS_TOKEN"] || secret(env["NATS_TOKEN_FILE"]),
      };
  const { credsFile, nkeyFile } = from;
  if (credsFile) return { authenticator: credsAuthenticator(eachTime(() => readFileSync(credsFile))) };
  if (nkeyFile) return { authenticator: nkeyAuthenticator(eachTime(() => Buffer.from(readFileSync(nkeyFile, "utf8").trim()))) };
  if (from.user) return { authenticator: usernamePasswordAuthenticator(from.user, from.password) };
  if (from.token) return { authenticator: tokenAuthenticator(from.token) };
  for (const server of servers) {
    const [, user, password] = /\/\/([^:@/]*)(?::([^@/]*))?@/.exec(server) ?? [];
    if (!user) continue;
    if (password === undefined) return { authenticator: tokenAuthenticator(decodeURIComponent(user)) };
    return { authenticator: usernamePasswordAuthenticator(decodeURIComponent(user), decodeURIComponent(password)) };
  }
  return {};
}

/** Reads now, so that a file that is not there is found, and again for each connection, since files of credentials change. */
function eachTime(read: () => Uint8Array): () => Uint8Array {
  read();
  return read;
}

/** The secret in a file, without the end of its line. */
function secret(file: string | undefined): string | undefined {
  return file ? readFileSync(file, "utf8").replace(/\r?\n$/, "") : undefined;
}

function tlsOf(env: Readonly<Record<string, string | undefined>>): NodeConnectionOptions {
  const { NATS_CA: caFile, NATS_CERT: certFile, NATS_KEY: keyFile } = env;
  if (!caFile && !certFile) return {};
  return { tls: { ...(caFile && { caFile }), ...(certFile && { certFile }), ...(keyFile && { keyFile }) } };
}

function defaultId(): string {
  const process_ = `-${process.pid}-${randomBytes(2).toString("hex")}`;
  const host = hostname().replaceAll(/[^\x21-\x7e]/g, "_");
  return host.slice(0, 128 - process_.length) + process_;
}
