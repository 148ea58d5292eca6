import type { CallKey, Dispatch } from "./dispatch.js";
import { protocolVersion } from "./names.js";

/** What an attempt came to. `output` is JSON: a string, an array of content parts, or null. */
export type Outcome =
  | { readonly kind: "success"; readonly output: string }
  | { readonly kind: "failure"; readonly error: string; readonly cause?: string }
  | { readonly kind: "retry"; readonly reason: string; readonly afterMs: number }
  | { readonly kind: "uncertain"; readonly reason: string }
  | { readonly kind: "released" }
  | { readonly kind: "deferred" };

/** A message that is to be published. */
export interface Message {
  readonly subject: string;
  readonly headers: ReadonlyArray<readonly [string, string]>;
  readonly payload: Uint8Array;
}

/** An outcome that cannot be put on the wire. */
export class InvalidOutcome extends Error {
  override readonly name = "InvalidOutcome";
}

const longestAfterMs = 7 * 24 * 3600 * 1000;
const maxReason = 64 * 1024;
const maxExecutor = 128;
export const validCause = /^[a-z_]{1,32}$/;

/** A text as JSON; surrogates without a partner become U+FFFD. */
export function jsonString(text: string): string {
  return JSON.stringify(text.toWellFormed());
}

/** The members that name a call. */
export function keyMembers(key: CallKey): string {
  return `"session_id":${jsonString(key.sessionId)},"turn_id":${jsonString(key.turnId)},"call_id":${jsonString(key.callId)}`;
}

/** Builds the message that answers a hand-over. It throws InvalidOutcome. */
export function encodeOutcome(d: Dispatch, o: Outcome, executor: string): Message {
  const id = o.kind === "released" ? `${d.nonce}.released.${d.handover}` : `${d.nonce}.${o.kind}`;
  const name = executorName(executor);
  const by = name === "" ? "" : `,"executor":${jsonString(name)}`;
  const text = `{${keyMembers(d.key)},"nonce":${jsonString(d.nonce)}${by},${kindMembers(o)}}`;
  return {
    subject: d.resultSubject,
    headers: [
      ["Nats-Msg-Id", id],
      ["Fn-Protocol", protocolVersion],
    ],
    payload: Buffer.from(text, "utf8"),
  };
}

function kindMembers(o: Outcome): string {
  switch (o.kind) {
    case "success":
      if (!/^["[n]/.test(o.output)) throw new InvalidOutcome("the output must be a JSON string, an array of content parts or null");
      return `"success":true,"output":${o.output}`;
    case "failure":
      if (o.cause === undefined) return `"success":false,"error":${jsonString(o.error)}`;
      if (!validCause.test(o.cause)) throw new InvalidOutcome(`the cause ${JSON.stringify(o.cause)} does not match ${validCause.source}`);
      return `"success":false,"error":${jsonString(o.error)},"cause":"${o.cause}"`;
    case "retry":
      return `"retry":{"reason":${jsonString(cut(o.reason, maxReason))},"after_ms":${afterMs(o.afterMs)}}`;
    case "uncertain":
      return `"uncertain":{"reason":${jsonString(cut(o.reason, maxReason))}}`;
    case "released":
    case "deferred":
      return `"${o.kind}":true`;
  }
}

function afterMs(ms: number): number {
  return Number.isNaN(ms) ? 0 : Math.trunc(Math.min(Math.max(ms, 0), longestAfterMs));
}

/** The printable part of a name, as far as it fits. */
export function executorName(name: string): string {
  return cut(name.toWellFormed().replaceAll(/[^\P{C}]|[\p{Zl}\p{Zp}\uFFFD]|(?! )\p{Zs}/gu, ""), maxExecutor);
}

/** The beginning of a text that has so many bytes at most. */
export function cut(text: string, bytes: number): string {
  if (text.length * 3 <= bytes) return text;
  const encoded = Buffer.from(text.toWellFormed(), "utf8");
  if (encoded.length <= bytes) return text;
  let end = bytes;
  while (((encoded[end] ?? 0) & 0xc0) === 0x80) end--;
  return encoded.toString("utf8", 0, end);
}

/** What the server compares with its limit: the payload and the encoded headers. */
export function messageSize(m: Message): number {
  let size = m.payload.length + "NATS/1.0\r\n\r\n".length;
  for (const [name, value] of m.headers) size += Buffer.byteLength(`${name}: ${value}\r\n`);
  return size;
}
