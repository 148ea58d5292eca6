import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { test } from "node:test";
import { type Call, type Effects, Executor, type OnUncertain, type Verdict, cannotTell, done, notDone, silentLogger } from "callfan";
import { Beats } from "#internal/engine/beats.js";
import { type Lease, Leases } from "#internal/engine/leases.js";
import { TooLarge } from "#internal/engine/link.js";
import type { Standing } from "#internal/wire/requests.js";
import { FakeLink, FakeMessage, dispatch, serve } from "./fakelink.js";
import { cases } from "./fixture.js";

const executor = (): Executor => new Executor({ pool: "test", logger: silentLogger });

interface Decision {
  readonly effects?: Effects;
  readonly deliveries: number;
  readonly uncertain: boolean;
  readonly on_uncertain: OnUncertain;
  readonly standing: Standing;
  readonly verify: "" | "done" | "not_done" | "cannot_tell" | "fails";
  readonly expect: { readonly looked_up: boolean; readonly verified: boolean; readonly runs: boolean; readonly kind: string; readonly cause: string; readonly unknown?: boolean };
}

test("decisions about every delivery", async () => {
  for (const c of cases<Decision>("decisions.json")) {
    let runs = false;
    let verified = false;
    const verify = (): Verdict => {
      verified = true;
      if (c.verify === "done") return done("done before");
      if (c.verify === "not_done") return notDone();
      if (c.verify === "cannot_tell") return cannotTell("the bank does not answer");
      throw new Error("no way to the bank");
    };
    const ex = executor().function("f", { ...(c.effects && { effects: c.effects }), ...(c.verify !== "" && { verify }) }, () => {
      runs = true;
    });
    const link = new FakeLink();
    link.standing = () => Promise.resolve(c.standing);
    await using bundle = serve(ex, { link });
    await bundle.settle(new FakeMessage(dispatch("f", { uncertain: c.uncertain, onUncertain: c.on_uncertain }), c.deliveries));
    const outcome = link.reports[0]?.outcome;
    const got = { looked_up: link.lookups > 0, verified, runs, kind: outcome?.kind ?? "", cause: (outcome?.kind === "failure" && outcome.cause) || "" };
    const { looked_up, verified: wantVerified, runs: wantRuns, kind, cause } = c.expect;
    assert.deepEqual(got, { looked_up, verified: wantVerified, runs: wantRuns, kind, cause }, JSON.stringify(c));
  }
});

test("a call that is delivered again while it runs is left to the run in hand", async () => {
  let entered = 0;
  let release: () => void = () => undefined;
  const ex = executor().function("f", {}, async () => {
    entered++;
    await new Promise<void>((resolve) => (release = resolve));
    return "once";
  });
  await using bundle = serve(ex);
  const d = dispatch("f");
  const first = new FakeMessage(d);
  const second = new FakeMessage(d, 2);
  bundle.link.add(first);
  bundle.link.add(second);
  while (entered === 0 || !bundle.log.text.includes("delivered again")) await delay(1);
  release();
  await first.over.wait();
  assert.equal(entered, 1);
  assert.deepEqual([first.acked, second.acked], [1, 0]);
  assert.deepEqual(
    bundle.link.reports.map((r) => r.outcome),
    [{ kind: "success", output: '"once"' }],
  );
});

test("an outcome is reported again until it is stored, and the ack comes after it", async () => {
  const link = new FakeLink();
  const message = new FakeMessage(dispatch("f"));
  let tries = 0;
  link.storing = () => {
    assert.equal(message.acked, 0);
    return ++tries < 3 ? Promise.reject(new Error("no responders")) : Promise.resolve();
  };
  await using bundle = serve(executor().function("f", {}, () => "x"), { link });
  await bundle.settle(message);
  assert.equal(tries, 3);
  assert.equal(message.acked, 1);
});

test("a result that is too large becomes a failure", async () => {
  const link = new FakeLink();
  link.storing = (o) => (o.kind === "success" ? Promise.reject(new TooLarge(2000, 1000)) : Promise.resolve());
  await using bundle = serve(executor().function("f", {}, () => "x"), { link });
  await bundle.settle(new FakeMessage(dispatch("f")));
  assert.deepEqual(link.reports[0]?.outcome, { kind: "failure", cause: "too_large", error: "result too large (2000 bytes, limit 1000)" });
});

test("a cancelled call ends its handler's signal and reports nothing", async () => {
  let seen: unknown;
  const ex = executor().function("f", {}, async (_, call: Call) => {
    await new Promise<void>((resolve) => call.signal.addEventListener("abort", () => resolve()));
    seen = call.signal.reason;
  });
  await using bundle = serve(ex);
  const message = new FakeMessage(dispatch("f"));
  bundle.link.add(message);
  await delay(20);
  if (!(message.content instanceof Error)) bundle.link.cancel(message.content.key);
  await message.over.wait();
  assert.equal((seen as Error).name, "CallCancelled");
  assert.deepEqual(bundle.link.reports, []);
});

test("a notice that overtook its call has it looked up", async () => {
  let ran = false;
  const link = new FakeLink();
  link.standing = () => Promise.resolve("cancelled");
  await using bundle = serve(
    executor().function("f", {}, () => {
      ran = true;
    }),
    { link },
  );
  await delay(1);
  const d = dispatch("f");
  link.cancel(d.key);
  await bundle.settle(new FakeMessage(d));
  assert.equal(link.lookups, 1);
  assert.equal(ran, false);
  assert.deepEqual(link.reports, []);
});

test("a timeout is answered at once, and what comes later is ignored", async () => {
  const ex = executor().function("f", { timeout: "50ms" }, () => delay(300, "late"));
  await using bundle = serve(ex);
  await bundle.settle(new FakeMessage(dispatch("f")));
  assert.deepEqual(bundle.link.reports[0]?.outcome, { kind: "failure", cause: "timeout", error: "timed out after 50ms" });
  await delay(400);
  assert.equal(bundle.link.reports.length, 1);
});

test("a stop lets running calls finish and gives back what was not started", async () => {
  const link = new FakeLink();
  const ex = executor().function("f", {}, () => delay(100, "done"));
  const running = new FakeMessage(dispatch("f"));
  const bundle = serve(ex, { link });
  link.add(running);
  await delay(30);
  bundle.worker.soft.fire();
  await bundle[Symbol.asyncDispose]();
  assert.deepEqual(
    link.reports.map((r) => r.outcome),
    [{ kind: "success", output: '"done"' }],
  );
  assert.equal(running.acked, 1);
});

test("the hard stop interrupts handlers", async () => {
  const link = new FakeLink();
  const ex = executor()
    .function("again", { effects: "none" }, (_, call) => delay(60_000, "", { signal: call.signal }))
    .function("once", {}, (_, call) => delay(60_000, "", { signal: call.signal }))
    .function("checked", { verify: () => notDone() }, (_, call) => delay(60_000, "", { signal: call.signal }))
    .function("asked", { onUncertain: "park" }, (_, call) => delay(60_000, "", { signal: call.signal }));
  const bundle = serve(ex, { link, stopTimeoutMs: 50 });
  const messages = ["again", "once", "checked", "asked"].map((name) => new FakeMessage(dispatch(name)));
  for (const message of messages) link.add(message);
  await delay(30);
  await bundle[Symbol.asyncDispose]();
  const reported = new Map(link.reports.map((r) => [r.d.function, r.outcome]));
  assert.equal(reported.get("again")?.kind, "released");
  assert.equal(reported.get("asked")?.kind, "uncertain");
  const once = reported.get("once");
  assert.equal(once?.kind === "failure" && once.cause, "unknown_outcome");
  assert.equal(reported.has("checked"), false);
  assert.deepEqual(
    messages.map((m) => m.acked),
    [1, 1, 0, 1],
  );
});

test("an impatient stop does not wait for the stop timeout", async () => {
  const link = new FakeLink();
  const ex = executor().function("f", { effects: "none" }, (_, call) => delay(60_000, "", { signal: call.signal }));
  const bundle = serve(ex, { link, stopTimeoutMs: 60_000 });
  link.add(new FakeMessage(dispatch("f")));
  await delay(30);
  bundle.worker.soft.fire();
  bundle.worker.interrupt();
  await bundle[Symbol.asyncDispose]();
  assert.deepEqual(
    link.reports.map((r) => r.outcome),
    [{ kind: "released" }],
  );
});

test("a message that is no call is left three times, then terminated", async () => {
  await using bundle = serve(executor().function("f", {}, () => ""));
  const left = new FakeMessage(new Error("no call"), 3);
  const ended = new FakeMessage(new Error("no call"), 4);
  bundle.link.add(left);
  await bundle.settle(ended);
  assert.equal(left.terminated, undefined);
  assert.equal(ended.terminated, "no call");
  assert.equal(left.acked + ended.acked, 0);
});

test("a function that is not served is given back, unless it may have run", async () => {
  await using bundle = serve(executor().function("f", {}, () => ""));
  await bundle.settle(new FakeMessage(dispatch("g")));
  assert.deepEqual(bundle.link.reports[0]?.outcome, { kind: "released" });
  const again = new FakeMessage(dispatch("g"), 2);
  bundle.link.add(again);
  await delay(400);
  assert.equal(again.acked, 0);
});

test("leases are extended until the call is settled", async () => {
  const link = new FakeLink();
  link.ackWaitMs = 60;
  await using bundle = serve(executor().function("f", {}, () => delay(200)), { link });
  const message = new FakeMessage(dispatch("f"));
  await bundle.settle(message);
  const extended = message.extended;
  assert.ok(extended >= 4, String(extended));
  await delay(100);
  assert.equal(message.extended, extended);
});

test("calls that are read after the process stood still are doubted for a second", () => {
  let now = 1;
  const leases = new Leases(silentLogger, undefined, () => now);
  const doubtful = (): boolean => leases.hold(dispatch("f"), new FakeMessage(dispatch("f")), Date.now() + 60_000).doubtful;
  leases.start(3000);
  try {
    assert.equal(doubtful(), false);
    now += 2600;
    assert.equal(doubtful(), false);
    leases.beat();
    now += 2800;
    assert.equal(doubtful(), true, "before the beat");
    leases.beat();
    assert.equal(doubtful(), true, "after it");
    now += 999;
    assert.equal(doubtful(), true);
    now += 2;
    assert.equal(doubtful(), false);
  } finally {
    leases.stop();
  }
});

test("a call that lay in the network for half a lease is doubted", () => {
  const leases = new Leases(silentLogger);
  const doubtful = (transitMs: number): boolean => leases.hold(dispatch("f"), new FakeMessage(dispatch("f"), 1, transitMs), Date.now() + 60_000).doubtful;
  leases.start(3000);
  try {
    assert.equal(doubtful(1500), false);
    assert.equal(doubtful(1501), true);
    assert.equal(doubtful(0), false);
  } finally {
    leases.stop();
  }
});

test("a call that is held is doubted when nobody extended its lease in time", () => {
  let now = 1;
  const guard = { beats: new Beats(), hold: () => undefined, drop: () => undefined, lease: () => undefined };
  const leases = new Leases(silentLogger, guard, () => now);
  const hold = (): Lease => leases.hold(dispatch("f"), new FakeMessage(dispatch("f")), Date.now() + 60_000);
  leases.start(3000);
  try {
    const kept = hold();
    for (let i = 0; i < 5; i++) {
      now += 1500;
      guard.beats.beat(now, 3000); // the event loop is busy, and the thread is not
    }
    assert.equal(kept.doubtful, false);
    assert.equal(hold().doubtful, true, "it was read late");
    now += 2800; // the whole process stands still
    assert.equal(kept.doubtful, true);
    guard.beats.beat(now, 3000);
    assert.equal(kept.doubtful, true);
  } finally {
    leases.stop();
  }
});

test("logs hold no arguments, outputs or nonces", async () => {
  const ex = executor().function("f", {}, () => {
    throw new Error("crash of the function");
  });
  await using bundle = serve(ex);
  await bundle.settle(new FakeMessage(dispatch("f", { arguments: '{"password":"hunter2"}' })));
  assert.deepEqual(bundle.link.reports[0]?.outcome, { kind: "failure", cause: "panic", error: "function crashed" });
  assert.match(bundle.log.text, /ERROR function crashed .*crash of the function.*engine\.test/);
  assert.doesNotMatch(bundle.log.text, /hunter2|0123456789abcdefghijkl/);
});
