import { createHash } from "node:crypto";
import { member, parts, textOf } from "./jsontext.js";
import { type Names, protocolVersion, token } from "./names.js";

/** A call is named for ever by three ids of the API. */
export interface CallKey {
  readonly sessionId: string;
  readonly turnId: string;
  readonly callId: string;
}

/** What happens to a call that may have run without its outcome being known. */
export type OnUncertain = "rerun" | "verify" | "fail" | "park";

/** One hand-over of an attempt, as its message says. */
export interface Dispatch {
  readonly key: CallKey;
  readonly function: string;
  /** The very text that the model wrote. */
  readonly arguments: string;
  readonly attempt: number;
  readonly handover: number;
  /** Proof that an outcome answers this attempt. Never logged, never given to handlers. */
  readonly nonce: string;
  readonly resultSubject: string;
  readonly idempotencyKey: string;
  readonly timeoutMs?: number;
  readonly deadlineMs?: number;
  readonly traceparent?: string;
  readonly tracestate?: string;
  readonly uncertain: boolean;
  readonly onUncertain?: OnUncertain;
}

/** Headers as they came, names byte by byte. */
export type Headers = ReadonlyMap<string, string>;

/** Says why a message is no call. */
export class NotACall extends Error {
  override readonly name = "NotACall";
}

const validNonce = /^[A-Za-z0-9_-]{1,128}$/;
const choices: readonly string[] = ["rerun", "verify", "fail", "park"];

/** Reads a call message. It throws NotACall when it is none. */
export function decodeCall(names: Names, subject: string, headers: Headers, payload: Uint8Array): Dispatch {
  const version = headers.get("Fn-Protocol") ?? "";
  if (version !== protocolVersion) throw new NotACall(`protocol ${JSON.stringify(version)}; this executor speaks ${protocolVersion}`);
  let read;
  try {
    read = parts(textOf(payload));
  } catch (error) {
    throw new NotACall(`the payload cannot be read: ${error instanceof SyntaxError ? "it is not one JSON object" : String(error)}`);
  }
  const text = (name: string): string => {
    const value = member(read.members, name);
    if (typeof value !== "string" || value === "") throw new NotACall(`${name} is missing or not a text`);
    return value;
  };
  const key = { sessionId: text("session_id"), turnId: text("turn_id"), callId: text("call_id") };
  const name = text("name");
  const functionToken = subject.slice(subject.lastIndexOf(".") + 1);
  if (token(name) !== functionToken) throw new NotACall(`the call is for function ${JSON.stringify(name)} but came on ${JSON.stringify(subject)}`);
  const resultSubject = headers.get("Fn-Result-Subject") ?? "";
  if (!names.isResult(resultSubject, functionToken)) throw new NotACall("header Fn-Result-Subject is not a result subject of this function");
  const nonce = headers.get("Fn-Nonce") ?? "";
  if (!validNonce.test(nonce)) throw new NotACall("header Fn-Nonce is missing or malformed");
  const choice = headers.get("Fn-On-Uncertain") ?? "";
  if (choice !== "" && !choices.includes(choice)) throw new NotACall(`header Fn-On-Uncertain is ${JSON.stringify(choice)}`);
  const timeoutMs = optionalNumber(headers, "Fn-Timeout-Ms");
  const deadlineMs = optionalNumber(headers, "Fn-Deadline");
  const traceparent = headers.get("traceparent");
  const tracestate = headers.get("tracestate");
  return {
    key,
    function: name,
    arguments: read.arguments ?? "{}",
    attempt: number(headers, "Fn-Attempt"),
    handover: number(headers, "Fn-Handover"),
    nonce,
    resultSubject,
    idempotencyKey: headers.get("Fn-Idempotency-Key") || idempotencyKey(key),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(deadlineMs !== undefined && { deadlineMs }),
    ...(traceparent && { traceparent }),
    ...(tracestate && { tracestate }),
    uncertain: headers.get("Fn-Uncertain") === "1",
    ...(choice !== "" && { onUncertain: choice as OnUncertain }),
  };
}

function optionalNumber(headers: Headers, name: string): number | undefined {
  return headers.get(name) ? number(headers, name) : undefined;
}

function number(headers: Headers, name: string): number {
  const text = headers.get(name) ?? "";
  const value = Number(text);
  if (!/^\+?\d{1,18}$/.test(text) || value < 1) throw new NotACall(`header ${name} is ${JSON.stringify(text)}`);
  return value;
}

/** The key of a call that a handler hands to its downstreams, as dispatchers compute it. */
export function idempotencyKey(key: CallKey): string {
  const hash = createHash("sha256");
  for (const id of [key.sessionId, key.turnId, key.callId]) {
    const bytes = Buffer.from(id, "utf8");
    hash.update(`${bytes.length}:`).update(bytes);
  }
  return "call_" + hash.digest().subarray(0, 17).toString("base64url").slice(0, 22);
}

/** Names a hand-over within this process. */
export function handoverId(d: Dispatch): string {
  return JSON.stringify([d.key.sessionId, d.key.turnId, d.key.callId, d.attempt, d.handover]);
}

/** Names a call within this process. */
export function keyId(key: CallKey): string {
  return JSON.stringify([key.sessionId, key.turnId, key.callId]);
}
