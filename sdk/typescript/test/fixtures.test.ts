import assert from "node:assert/strict";
import { test } from "node:test";
import { Content, ConfigurationError, Executor, type FunctionOptions, type Part, type Verdict, notDone } from "callfan";
import { encodeOutput } from "#internal/output.js";
import { milliseconds } from "#internal/policy.js";
import { type Dispatch, NotACall, decodeCall, idempotencyKey } from "#internal/wire/dispatch.js";
import { Names, deliveriesOf, token } from "#internal/wire/names.js";
import { type Outcome, encodeOutcome } from "#internal/wire/outcome.js";
import { pullStatus } from "#internal/wire/pulls.js";
import { type Definition, lookupRequest, parseCancel, parseLookupReply, parseRegistrationReply, registrationRequest, termBody } from "#internal/wire/requests.js";
import { bytes, cases } from "./fixture.js";

const names = new Names("fn");

interface CallCase {
  readonly name: string;
  readonly subject: string;
  readonly headers?: Record<string, string>;
  readonly payload: string;
  readonly expect: Record<string, unknown> & { readonly arguments: string };
}

function decode(c: CallCase): Dispatch {
  return decodeCall(names, c.subject, new Map(Object.entries(c.headers ?? {})), bytes(c.payload));
}

test("tokens", () => {
  for (const c of cases<{ name: string; token: string }>("tokens.json")) assert.equal(token(c.name), c.token, c.name);
});

for (const index of ["calls.json", "calls-foreign.json"]) {
  test(`call messages: ${index}`, () => {
    for (const c of cases<CallCase>(index)) {
      const d = decode(c);
      const got = {
        session_id: d.key.sessionId,
        turn_id: d.key.turnId,
        call_id: d.key.callId,
        function: d.function,
        attempt: d.attempt,
        handover: d.handover,
        nonce: d.nonce,
        result_subject: d.resultSubject,
        idempotency_key: d.idempotencyKey,
        timeout_ms: d.timeoutMs ?? null,
        deadline_ms: d.deadlineMs ?? null,
        traceparent: d.traceparent ?? null,
        uncertain: d.uncertain,
        on_uncertain: d.onUncertain ?? null,
      };
      const { arguments: path, ...want } = c.expect;
      assert.deepEqual(got, want, c.name);
      assert.deepEqual(Buffer.from(d.arguments), bytes(path), c.name);
      assert.equal(idempotencyKey(d.key), d.idempotencyKey, c.name);
    }
  });
}

test("messages that are no call", () => {
  for (const c of cases<CallCase>("invalid-calls.json")) assert.throws(() => decode(c), NotACall, c.name);
});

interface WireCall {
  readonly session_id: string;
  readonly turn_id: string;
  readonly call_id: string;
  readonly function: string;
  readonly attempt: number;
  readonly handover: number;
  readonly nonce: string;
  readonly result_subject: string;
}

function dispatchOf(c: WireCall): Dispatch {
  const key = { sessionId: c.session_id, turnId: c.turn_id, callId: c.call_id };
  const { attempt, handover, nonce } = c;
  return { key, function: c.function, arguments: "{}", attempt, handover, nonce, resultSubject: c.result_subject, idempotencyKey: idempotencyKey(key), uncertain: false };
}

interface OutcomeCase {
  readonly name: string;
  readonly kind: Outcome["kind"];
  readonly call: WireCall;
  readonly input: {
    readonly text?: string;
    readonly bytes?: string;
    readonly utf16?: number[];
    readonly parts?: Part[];
    readonly value?: unknown;
    readonly error?: string;
    readonly cause?: string;
    readonly reason?: string;
    readonly after_ms?: number;
    readonly executor?: string;
  };
  readonly expect: { readonly subject: string; readonly headers: Record<string, string>; readonly payload: string; readonly output_text?: string; readonly output_is_json?: boolean };
}

function valueOf({ input }: OutcomeCase): unknown {
  if (input.text !== undefined) return input.text;
  if (input.bytes !== undefined) return bytes(input.bytes);
  if (input.utf16 !== undefined) return String.fromCharCode(...input.utf16);
  if (input.parts !== undefined) return new Content(input.parts);
  return input.value;
}

function outcomeOf(c: OutcomeCase): Outcome {
  const { error = "", cause, reason = "", after_ms: afterMs = 0 } = c.input;
  switch (c.kind) {
    case "success":
      return { kind: "success", output: encodeOutput(valueOf(c)) };
    case "failure":
      return { kind: "failure", error, ...(cause !== undefined && { cause }) };
    case "retry":
      return { kind: "retry", reason, afterMs };
    case "uncertain":
      return { kind: "uncertain", reason };
    default:
      return { kind: c.kind };
  }
}

test("outcome messages", () => {
  for (const c of cases<OutcomeCase>("outcomes.json")) {
    const message = encodeOutcome(dispatchOf(c.call), outcomeOf(c), c.input.executor ?? "");
    assert.equal(message.subject, c.expect.subject, c.name);
    assert.deepEqual(Object.fromEntries(message.headers), c.expect.headers, c.name);
    const got = JSON.parse(Buffer.from(message.payload).toString()) as { output?: unknown };
    const want = JSON.parse(bytes(c.expect.payload).toString()) as { output?: unknown };
    if (c.expect.output_text !== undefined) {
      const text = bytes(c.expect.output_text).toString();
      if (c.expect.output_is_json) assert.deepEqual(JSON.parse(String(got.output)), JSON.parse(text), c.name);
      else assert.equal(got.output, text, c.name);
      delete got.output;
      delete want.output;
    }
    assert.deepEqual(got, want, c.name);
  }
});

test("registrations", () => {
  type Input = { pool: string; function: Definition; functions: string[]; executor: { id: string; language: string; version?: string; host: string } };
  for (const c of cases<{ name: string; input: Input; expect: { subject: string; payload: string } }>("registrations.json")) {
    const { name, description, parameters, verifies, policy } = c.input.function;
    const { queue_timeout: queueTimeout, total_deadline: totalDeadline, on_uncertain: onUncertain, ...same } = policy;
    const options = { description, parameters, queueTimeout, totalDeadline, onUncertain, ...same, verify: verifies ? (): Verdict => notDone() : undefined };
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    const [definition] = new Executor({ pool: c.input.pool }).function(name, given, () => "").definitions;
    assert.ok(definition);
    assert.equal(names.register(name), c.expect.subject, c.name);
    const got: unknown = JSON.parse(registrationRequest(c.input.pool, definition, c.input.functions, c.input.executor));
    const want = JSON.parse(bytes(c.expect.payload).toString()) as { function: Definition };
    assert.deepEqual(inMilliseconds(got), inMilliseconds({ ...want, function: { ...least, ...want.function } }), c.name);
  }
});

const least: Partial<Definition> = { verifies: false, policy: {} };

/** Durations may be written in more than one way. */
function inMilliseconds(value: unknown): unknown {
  const text = JSON.stringify(value, (name, v: unknown) => (["timeout", "queue_timeout", "total_deadline", "initial", "max"].includes(name) && typeof v === "string" ? milliseconds(v) : v));
  return JSON.parse(text);
}

test("registrations that are refused here already", () => {
  // Others ask with what no Executor can be made to ask with: another subject, another protocol.
  type Request = { pool?: unknown; function?: { name?: unknown; parameters?: unknown; policy?: Record<string, unknown> } };
  let seen = 0;
  for (const c of cases<{ name: string; code: string; payload: string }>("invalid-registrations.json")) {
    if (!["invalid_pool", "invalid_function"].includes(c.code) || c.name === "function-text") continue;
    const { pool, function: f } = JSON.parse(bytes(c.payload).toString()) as Request;
    const { effects, attempts, backoff, timeout, on_uncertain: onUncertain } = f?.policy ?? {};
    if (typeof timeout === "number") continue; // here that is milliseconds
    const options = Object.fromEntries(Object.entries({ parameters: f?.parameters, effects, attempts, backoff, timeout, onUncertain }).filter(([, value]) => value !== undefined));
    const declare = (): unknown => new Executor({ pool: pool as string }).function(f?.name as string, options as FunctionOptions, () => "");
    assert.throws(declare, ConfigurationError, c.name);
    seen++;
  }
  assert.ok(seen > 12, String(seen));
});

test("registration replies", () => {
  type Case = { name: string; payload: string; expect: { binding?: Record<string, unknown>; code?: string; again?: boolean } };
  for (const c of cases<Case>("registration-replies.json")) {
    const reply = parseRegistrationReply(bytes(c.payload));
    if (c.expect.binding !== undefined) {
      assert.ok("binding" in reply, c.name);
      const b = reply.binding;
      const got = { calls_stream: b.callsStream, consumer: b.consumer, ack_wait_ms: b.ackWaitMs, max_payload: b.maxPayload, result_prefix: b.resultPrefix, refresh_ms: b.refreshMs };
      assert.deepEqual(got, c.expect.binding, c.name);
    } else if (c.expect.code !== undefined) {
      assert.ok("code" in reply && reply.code === c.expect.code, c.name);
    } else {
      assert.ok("again" in reply, c.name);
    }
  }
});

test("look-ups", () => {
  for (const c of cases<{ name: string; call: WireCall; expect: { subject: string; payload: string } }>("lookups.json")) {
    assert.equal(names.outcome(c.call.function), c.expect.subject, c.name);
    assert.deepEqual(JSON.parse(lookupRequest(dispatchOf(c.call))), JSON.parse(bytes(c.expect.payload).toString()), c.name);
  }
  for (const c of cases<{ name: string; payload: string; expect: { standing?: string } }>("lookup-replies.json")) {
    assert.equal(parseLookupReply(bytes(c.payload)), c.expect.standing, c.name);
  }
});

test("cancel notices", () => {
  for (const c of cases<{ name: string; payload: string; expect: Record<string, string> | null }>("cancels.json")) {
    const notice = parseCancel(bytes(c.payload));
    const got = notice && { session_id: notice.key.sessionId, turn_id: notice.key.turnId, call_id: notice.key.callId, reason: notice.reason };
    assert.deepEqual(got ?? null, c.expect && { reason: "", ...c.expect }, c.name);
  }
});

test("pull statuses", () => {
  for (const c of cases<{ name: string; headers: Record<string, string>; action: string; pending: number }>("pull-statuses.json")) {
    const { action, pending } = pullStatus(Number(c.headers["Status"]), c.headers["Description"] ?? "", c.headers["Nats-Pending-Messages"] ?? "");
    assert.equal(action, c.action, c.name);
    if (action === "ended") assert.equal(pending, c.pending, c.name);
  }
});

test("numbers of deliveries", () => {
  for (const c of cases<{ name: string; reply: string; deliveries: number }>("deliveries.json")) assert.equal(deliveriesOf(c.reply), c.deliveries, c.name);
});

test("terminations", () => {
  for (const c of cases<{ name: string; reason: string; headers: Record<string, string> | null; body: string }>("terms.json")) {
    const got = termBody(c.reason, new Map(Object.entries(c.headers ?? {})));
    const want = bytes(c.body).toString();
    assert.ok(got.startsWith("+TERM ") && want.startsWith("+TERM "), c.name);
    assert.deepEqual(JSON.parse(got.slice(6)), JSON.parse(want.slice(6)), c.name);
  }
});
