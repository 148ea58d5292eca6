import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { ConfigurationError, Executor, Failure, type FunctionOptions, type OnUncertain, Retry, type StandardSchema, Uncertain, cannotTell, done, imagePart, notDone, parts, silentLogger, textPart } from "callfan";
import { invoke } from "callfan/testing";
import { z } from "zod";
import { configOf } from "#internal/config.js";
import { cases } from "./fixture.js";

const executor = (): Executor => new Executor({ pool: "test", logger: silentLogger });

test("arguments are typed and checked by a schema", async () => {
  const ex = executor().function("get_customer", { input: z.object({ customer_id: z.string(), page: z.int().default(1) }) }, ({ customer_id, page }) => {
    const typed: [string, number] = [customer_id, page];
    return typed;
  });
  assert.deepEqual(await invoke(ex, "get_customer", { customer_id: "123" }), { success: true, output: '["123",1]' });
  assert.deepEqual(await invoke(ex, "get_customer", { customer_id: 123 }), {
    success: false,
    error: "invalid arguments: customer_id: Invalid input: expected string, received number",
    cause: "invalid_arguments",
  });
  assert.deepEqual(await invoke(ex, "get_customer", "[]"), { success: false, error: "invalid arguments: want a JSON object", cause: "invalid_arguments" });
  const [definition] = ex.definitions;
  assert.deepEqual(definition?.parameters, {
    type: "object",
    properties: { customer_id: { type: "string" }, page: { type: "integer", default: 1, minimum: -9007199254740991, maximum: 9007199254740991 } },
    required: ["customer_id"],
  });
});

test("any Standard Schema serves, with parameters where it derives none", async () => {
  const schema: StandardSchema<unknown, number> = {
    "~standard": { version: 1, vendor: "test", validate: (value) => (Object.keys(value as object).length > 0 ? { value: 7 } : { issues: [{ message: "it is empty", path: ["a", { key: 0 }] }] }) },
  };
  assert.throws(() => executor().function("f", { input: schema }, () => ""), /give one by the option parameters/);
  const ex = executor().function("f", { input: schema, parameters: { type: "object" } }, (n) => n * 6);
  assert.deepEqual(await invoke(ex, "f", { a: 1 }), { success: true, output: "42" });
  assert.deepEqual(await invoke(ex, "f"), { success: false, error: "invalid arguments: a.0: it is empty", cause: "invalid_arguments" });
});

test("the raw form gets the very text", async () => {
  const text = '{ "n": 9007199254740993, "n": 1e400 }';
  const ex = executor().rawFunction("echo", {}, (args, call) => [args === call.arguments, args]);
  assert.deepEqual(await invoke(ex, "echo", text), { success: true, output: JSON.stringify([true, text]) });
});

test("outputs", async () => {
  const outputs: Array<[value: unknown, output: unknown]> = [
    ["", ""],
    [" text ", " text "],
    ["a\ud800b", "a\ufffdb"],
    [undefined, null],
    [null, null],
    [0, "0"],
    [false, "false"],
    [["a"], '["a"]'],
    [{ a: "<&>" }, '{"a":"<&>"}'],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
    [Buffer.from("bytes"), "bytes"],
    [parts(textPart("a"), imagePart("https://example.com/a.png")), [{ type: "input_text", text: "a" }, { type: "input_image", image_url: "https://example.com/a.png" }]],
  ];
  for (const [value, output] of outputs) {
    assert.deepEqual(await invoke(executor().function("f", {}, () => value), "f"), { success: true, output });
  }
  const circular: { self?: unknown } = {};
  circular.self = circular;
  for (const value of [1n, circular, () => 1, parts(), parts(imagePart(""))]) {
    const got = await invoke(executor().function("f", {}, () => value), "f");
    assert.ok(got && "cause" in got && got.cause === "invalid_output", JSON.stringify(got));
  }
});

test("failures, retries and crashes", async () => {
  const ex = executor()
    .function("fails", {}, () => {
      throw new Failure("customer 999 not found", { cause: "not_found" });
    })
    .function("retries", {}, async () => {
      await delay(1);
      throw new Retry("HTTP 503", { afterMs: 1500 });
    })
    .function("crashes", {}, () => {
      throw new Error("secret-detail");
    })
    .function("silent", {}, () => {
      throw new Failure("");
    });
  assert.deepEqual(await invoke(ex, "fails"), { success: false, error: "customer 999 not found", cause: "not_found" });
  assert.deepEqual(await invoke(ex, "retries"), { retry: { reason: "HTTP 503", after_ms: 1500 } });
  assert.deepEqual(await invoke(ex, "crashes"), { success: false, error: "function crashed", cause: "panic" });
  assert.deepEqual(await invoke(ex, "silent"), { success: false, error: "the function failed without saying why" });
});

test("a handler knows its call", async () => {
  const deadline = new Date(Date.now() + 5000);
  const ex = executor().function("f", { timeout: "1m" }, (_, call) => ({ ...call, signal: call.signal.aborted, deadline: call.deadline.getTime() }));
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const got = await invoke(ex, "f", "{}", { sessionId: "sess_1", turnId: "turn_1", callId: "call_1", attempt: 2, deadline, traceparent });
  assert.ok(got && "output" in got);
  assert.deepEqual(JSON.parse(got.output as string), {
    key: { sessionId: "sess_1", turnId: "turn_1", callId: "call_1" },
    function: "f",
    arguments: "{}",
    attempt: 2,
    idempotencyKey: "call_CiacoAzU1ZHamdtTeF8qXM",
    deadline: deadline.getTime(),
    signal: false,
    uncertain: false,
    traceparent,
  });
});

test("timeouts, deadlines and cancellation reach the handler", async () => {
  const ex = executor().function("f", { timeout: 30 }, (_, call) => delay(10_000, "", { signal: call.signal }));
  assert.deepEqual(await invoke(ex, "f"), { success: false, error: "timed out after 30ms", cause: "timeout" });
  const late = await invoke(ex, "f", {}, { deadline: new Date(Date.now() + 10) });
  assert.ok(late && "cause" in late && late.cause === "deadline", JSON.stringify(late));
  assert.equal(await invoke(ex, "f", {}, { signal: AbortSignal.abort() }), undefined);
});

test("uncertain calls go by the policy", async () => {
  const verdicts = { done: done({ receipt: 1 }), not_done: notDone(), cannot_tell: cannotTell("no receipt") };
  const ex = executor()
    .function("pay", { input: z.object({ verdict: z.enum(["done", "not_done", "cannot_tell"]) }), verify: ({ verdict }) => verdicts[verdict] }, () => "paid")
    .function("blind", {}, () => "paid")
    .function("park", { onUncertain: "park" }, () => "paid")
    .function("reads", { effects: "none" }, () => "read")
    .function("wrong", { verify: (() => undefined) as never }, () => "paid");
  const uncertain = { uncertain: true };
  assert.deepEqual(await invoke(ex, "pay", { verdict: "done" }, uncertain), { success: true, output: '{"receipt":1}' });
  assert.deepEqual(await invoke(ex, "pay", { verdict: "not_done" }, uncertain), { success: true, output: "paid" });
  assert.deepEqual(await invoke(ex, "pay", { verdict: "cannot_tell" }, uncertain), { uncertain: { reason: "no receipt" } });
  const misfit = await invoke(ex, "pay", { verdict: "?" }, uncertain);
  assert.ok(misfit && "uncertain" in misfit && misfit.uncertain.reason.startsWith("invalid arguments: verdict"));
  assert.deepEqual(await invoke(ex, "wrong", {}, uncertain), { uncertain: { reason: "the verify handler could not tell" } });
  const blind = await invoke(ex, "blind", {}, uncertain);
  assert.ok(blind && "cause" in blind && blind.cause === "unknown_outcome");
  assert.ok("uncertain" in ((await invoke(ex, "park", {}, uncertain)) ?? {}));
  assert.deepEqual(await invoke(ex, "reads", {}, uncertain), { success: true, output: "read" });
});

test("options that cannot be used are refused", () => {
  const wrong: FunctionOptions[] = [
    { timeout: "30" },
    { timeout: -1 },
    { attempts: 0 },
    { backoff: { multiplier: 0.5 } },
    { backoff: { initial: "2m", max: "1m" } },
    { parameters: { type: "array" } },
    { onUncertain: "verify" },
    { effects: "maybe" as never },
  ];
  for (const options of wrong) assert.throws(() => executor().function("f", options, () => ""), ConfigurationError, JSON.stringify(options));
  assert.throws(() => executor().function("", {}, () => ""), ConfigurationError);
  assert.throws(() => executor().function("f", {}, () => "").function("f", {}, () => ""), /there is one of that name/);
  for (const options of [{ pool: "a.b" }, { pool: "a", concurrency: 0 }, { pool: "a", id: "a\nb" }, { pool: "a", prefix: "*" }, { pool: "a", servers: "http://x" }]) {
    assert.throws(() => new Executor(options), ConfigurationError, JSON.stringify(options));
  }
});

test("the environment says how to reach NATS", () => {
  const config = configOf({ pool: "a" }, { NATS_URL: "nats://u:p%40@a:1, b:2", CALLFAN_NATS_INBOX_PREFIX: "_INBOX_a" });
  assert.equal(config.inboxPrefix, "_INBOX_a");
  assert.deepEqual(config.nats().servers, ["nats://u:p%40@a:1", "b:2"]);
  assert.deepEqual(config.servers, ["nats://a:1", "b:2"]);
  assert.equal(configOf({ pool: "a" }, {}).servers[0], "nats://127.0.0.1:4222");
  assert.ok(Buffer.byteLength(config.id) <= 128);
});

test("an executor is run once, with functions", async () => {
  await assert.rejects(executor().run(), /there is no function/);
  const ex = new Executor({ pool: "a", credsFile: "/does/not/exist", logger: silentLogger }).function("f", {}, () => "");
  await assert.rejects(ex.run(), ConfigurationError);
});

interface LostRun {
  readonly name: string;
  readonly on_uncertain: OnUncertain;
  readonly verifies: boolean;
  readonly expect: { readonly kind: string; readonly cause?: string; readonly reason?: string };
}

test("a lost run goes by the choice for uncertain calls", async () => {
  for (const c of cases<LostRun>("lost-runs.json")) {
    const ex = new Executor({ pool: "test", logger: silentLogger }).function("f", c.verifies ? { verify: () => notDone() } : {}, () => {
      throw new Uncertain("the bank hung up");
    });
    const got = await invoke(ex, "f", {}, { onUncertain: c.on_uncertain });
    const { reason } = c.expect;
    const want = { "": undefined, retry: { retry: { reason, after_ms: 0 } }, uncertain: { uncertain: { reason } } };
    if (c.expect.kind === "failure") assert.ok(got && "cause" in got && got.cause === c.expect.cause, c.name);
    else assert.deepEqual(got, want[c.expect.kind as keyof typeof want], c.name);
  }
});
