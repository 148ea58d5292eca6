// The conformance executor of the TypeScript SDK; see protocol/conformance.md.
//
//   callfan conformance --executor 'node sdk/typescript/build/conformance-executor.js'
import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { type Call, type Duration, Executor, type Effects, Failure, Retry, cannotTell, done, notDone, parts, textPart } from "callfan";
import { z } from "zod";
import { log } from "./conformance-journal.js";
import block from "./conformance-thread.js";

const env = (name: string): string => {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set; callfan conformance sets it`);
  return value;
};

const ex = new Executor({
  pool: env("CONFORMANCE_POOL"),
  concurrency: Number(env("EXECUTOR_CONCURRENCY")),
  stopTimeout: Number(env("EXECUTOR_STOP_TIMEOUT_MS")),
  ...(process.env["CONFORMANCE_INBOX_PREFIX"] && { inboxPrefix: process.env["CONFORMANCE_INBOX_PREFIX"] }),
});

interface Options {
  readonly description: string;
  readonly effects?: Effects;
  readonly attempts?: number;
  readonly timeout?: Duration;
  readonly onUncertain?: "park";
}

/** Adds a function that writes the event log. */
function add<Schema extends z.ZodObject>(name: string, input: Schema, options: Options, handler: (input: z.output<Schema>, call: Call) => unknown): void {
  ex.function(name, { ...options, input }, async (value, call) => {
    log("start", call);
    try {
      return await handler(value as z.output<Schema>, call);
    } finally {
      log(call.signal.aborted ? "cancelled" : "end", call);
    }
  });
}

function echo(args: string, call: Call): string {
  log("start", call);
  log("end", call);
  return args;
}

async function pay({ ms = 0 }: { ms?: number | undefined }, call: Call): Promise<string> {
  log("effect", call);
  await delay(ms, undefined, { signal: call.signal });
  return "paid";
}

const none = z.object({});
const effects = { none: "none", idempotent: "idempotent", side_effects: "side_effects" } as const;

for (const name of ["echo", "sag mir, wo ☂.*>", "a/" + "n".repeat(300)]) {
  ex.rawFunction(name, { description: "Returns its arguments.", parameters: { type: "object" }, effects: effects.none }, echo);
}

add("fail", z.object({ text: z.string() }), { description: "Fails with a text.", effects: effects.none }, ({ text }) => {
  throw new Failure(text);
});

add("retry", z.object({ after_ms: z.int(), ok_at: z.int() }), { description: "Fails until an attempt.", effects: effects.idempotent, attempts: 5 }, (input, call) => {
  if (call.attempt < input.ok_at) throw new Retry("not yet", { afterMs: input.after_ms });
  return "ok";
});

add("sleep", z.object({ ms: z.int() }), { description: "Waits.", effects: effects.idempotent }, async ({ ms }, call) => {
  await delay(ms, undefined, { signal: call.signal });
  return "slept";
});

add("key", none, { description: "Says what it knows about its call.", effects: effects.idempotent }, (_, call) => ({
  idempotency_key: call.idempotencyKey,
  attempt: call.attempt,
  session_id: call.key.sessionId,
  turn_id: call.key.turnId,
  call_id: call.key.callId,
  function: call.function,
  deadline_ms: call.deadline.getTime(),
  traceparent: call.traceparent,
}));

add("pay_blind", z.object({ ms: z.int().optional() }), { description: "Pays.", effects: effects.side_effects }, pay);
add("pay_park", z.object({ ms: z.int().optional() }), { description: "Pays.", effects: effects.side_effects, onUncertain: "park" }, pay);
ex.function(
  "pay",
  {
    description: "Pays.",
    input: z.object({ verdict: z.string(), ms: z.int().optional() }),
    effects: effects.side_effects,
    verify: ({ verdict }, call) => {
      log("verify", call);
      switch (verdict) {
        case "done":
          return done("verified");
        case "not_done":
          return notDone();
        case "cannot_tell":
          return cannotTell("no receipt");
        default:
          throw new Error("secret-detail");
      }
    },
  },
  async (input, call) => {
    log("start", call);
    try {
      return await pay(input, call);
    } finally {
      log(call.signal.aborted ? "cancelled" : "end", call);
    }
  },
);

add("text", z.object({ text: z.string() }), { description: "Returns the text.", effects: effects.none }, ({ text }) => text);
add("parts", none, { description: "Returns content parts.", effects: effects.none }, () => parts(textPart("first"), textPart("second ☂")));
add("object", none, { description: "Returns an object.", effects: effects.none }, () => ({
  name: "Žluťoučký kůň ☂",
  nested: { list: [1, 2.5, true, null, "<a>&"], empty: {} },
  integer: 9007199254740991,
  text: '{"quoted":"\\n"}',
}));
add("nothing", none, { description: "Returns nothing.", effects: effects.none }, () => undefined);
add("crash", none, { description: "Crashes.", effects: effects.none }, () => {
  throw new TypeError("secret-detail");
});
add("typed", z.object({ count: z.int() }), { description: "Returns the number.", effects: effects.none }, ({ count }) => String(count));
add("large", z.object({ bytes: z.int() }), { description: "Returns a long text.", effects: effects.none }, ({ bytes }) => "x".repeat(bytes));

// The test of this SDK has it block the event loop as well.
const blocking = { description: "Keeps a thread busy.", input: z.object({ ms: z.int() }), effects: effects.idempotent };
if (process.env["CONFORMANCE_BLOCK"] === "event loop") ex.function("block", blocking, block);
else ex.workerFunction("block", blocking, new URL("./conformance-thread.js", import.meta.url));

add("stuck", none, { description: "Never returns.", effects: effects.none, timeout: "1s", attempts: 1 }, () => delay(10 * 60_000));

add("exit", z.object({ unless: z.string() }), { description: "Ends the process.", effects: effects.idempotent }, ({ unless }) => {
  if (!existsSync(unless)) process.exit(3);
  return "alive";
});

await ex.run();
process.exit(); // also when a handler of stuck is still there
