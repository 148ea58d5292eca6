import type { CallKey, Dispatch, Headers } from "./dispatch.js";
import { asObject, member, textOf } from "./jsontext.js";
import { cut, keyMembers } from "./outcome.js";

/** The definition of a function, as it is registered. */
export interface Definition {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: Record<string, unknown>;
  readonly verifies?: boolean;
  readonly policy: Record<string, unknown>;
}

/** Who registers, for operators. */
export interface ExecutorInfo {
  readonly id: string;
  readonly language: string;
  readonly version?: string;
  readonly host: string;
}

export function registrationRequest(pool: string, definition: Definition, functions: readonly string[], executor: ExecutorInfo): string {
  return JSON.stringify({ protocol: 1, pool, function: definition, functions, executor });
}

/** What a registered executor needs to pull calls. */
export interface Binding {
  readonly callsStream: string;
  readonly consumer: string;
  readonly ackWaitMs: number;
  readonly maxPayload: number;
  readonly resultPrefix: string;
  readonly refreshMs: number;
}

/** The answer to a registration: a binding, a refusal, or nothing to go by. */
export type RegistrationReply = { readonly binding: Binding } | { readonly code: string; readonly message: string } | { readonly again: string };

export function parseRegistrationReply(payload: Uint8Array): RegistrationReply {
  const reply = parseObject(payload);
  if (reply === undefined) return { again: "the answer is not readable" };
  const error = asObject(member(reply, "error"));
  if (error !== undefined) {
    const code = textMember(error, "code");
    const message = textMember(error, "message");
    return code === "unavailable" ? { again: message } : { code, message };
  }
  const b = asObject(member(reply, "binding"));
  if (member(reply, "ok") !== true || b === undefined) return { again: "the answer has no binding" };
  const binding = {
    callsStream: textMember(b, "calls_stream"),
    consumer: textMember(b, "consumer"),
    ackWaitMs: numberMember(b, "ack_wait_ms"),
    maxPayload: numberMember(b, "max_payload"),
    resultPrefix: textMember(b, "result_prefix"),
    refreshMs: numberMember(b, "refresh_ms"),
  };
  if (binding.callsStream === "" || binding.consumer === "") return { again: "the answer has no binding" };
  return { binding };
}

export function lookupRequest(d: Dispatch): string {
  return `{${keyMembers(d.key)},"nonce":${JSON.stringify(d.nonce)},"handover":${d.handover}}`;
}

/** How a call stands with the dispatchers. */
export type Standing = "pending" | "answered" | "cancelled" | "unknown";

/** The standing in the answer to a look-up; undefined when it has none. */
export function parseLookupReply(payload: Uint8Array): Standing | undefined {
  const reply = parseObject(payload);
  const standing = reply && member(reply, "standing");
  switch (standing) {
    case "pending":
    case "answered":
    case "cancelled":
    case "unknown":
      return standing;
    default:
      return undefined;
  }
}

/** Whose call a cancel notice is about; undefined when it is to be ignored. */
export function parseCancel(payload: Uint8Array): { readonly key: CallKey; readonly reason: string } | undefined {
  const notice = parseObject(payload);
  if (notice === undefined) return undefined;
  const key = { sessionId: textMember(notice, "session_id"), turnId: textMember(notice, "turn_id"), callId: textMember(notice, "call_id") };
  if (key.sessionId === "" || key.turnId === "" || key.callId === "") return undefined;
  return { key, reason: textMember(notice, "reason") };
}

/** What is published on the reply subject of a message that is no call. */
export function termBody(reason: string, headers: Headers): string {
  const body: Record<string, string> = { reason: oneLine(reason) };
  for (const [name, header] of termHeaders) {
    const value = headers.get(header);
    if (value) body[name] = value;
  }
  return "+TERM " + JSON.stringify(body);
}

const termHeaders = [
  ["key", "Fn-Key"],
  ["attempt", "Fn-Attempt"],
  ["nonce", "Fn-Nonce"],
  ["result_subject", "Fn-Result-Subject"],
  ["on_uncertain", "Fn-On-Uncertain"],
] as const;

function oneLine(text: string): string {
  return cut(text.toWellFormed().replaceAll(/[\r\n]+/g, " "), 256);
}

function parseObject(payload: Uint8Array): Record<string, unknown> | undefined {
  try {
    return asObject(JSON.parse(textOf(payload)));
  } catch {
    return undefined;
  }
}

function textMember(object: Record<string, unknown>, name: string): string {
  const value = member(object, name);
  return typeof value === "string" ? value : "";
}

function numberMember(object: Record<string, unknown>, name: string): number {
  const value = member(object, name);
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
