import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Executor, silentLogger } from "callfan";
import { invoke } from "callfan/testing";
import { z } from "zod";

const module = new URL("./worker.js", import.meta.url);
const ex = new Executor({ pool: "test", logger: silentLogger })
  .workerFunction("fibonacci", { input: z.object({ n: z.int() }), threads: 2 }, module)
  .workerFunction("busy", { export: "busy", timeout: 100, threads: 1 }, module)
  .workerFunction("fails", { export: "fails" }, module)
  .workerFunction("missing", { export: "missing" }, module);
after(() => ex.closeThreads());

test("a worker function runs in a thread, beside this one", async () => {
  let ticks = 0;
  const timer = setInterval(() => ticks++, 5);
  const got = await Promise.all([30, 31, 32].map((n) => invoke(ex, "fibonacci", { n })));
  clearInterval(timer);
  assert.deepEqual(
    got,
    ["832040", "1346269", "2178309"].map((output) => ({ success: true, output })),
  );
  assert.ok(ticks > 0);
  const misfit = await invoke(ex, "fibonacci", { n: "x" });
  assert.ok(misfit && "cause" in misfit && misfit.cause === "invalid_arguments");
});

test("a thread that computes on after its time is ended, and the next call gets another", async () => {
  assert.deepEqual(await invoke(ex, "busy", { ms: 60_000 }), { success: false, error: "timed out after 100ms", cause: "timeout" });
  assert.deepEqual(await invoke(ex, "busy", { ms: 0 }, { timeoutMs: 10_000 }), { success: true, output: "over" });
});

test("failures, retries, crashes and the end of a thread come over", async () => {
  assert.deepEqual(await invoke(ex, "fails", { how: "failure" }), { success: false, error: "no", cause: "not_found" });
  assert.deepEqual(await invoke(ex, "fails", { how: "retry" }), { retry: { reason: "busy", after_ms: 7 } });
  assert.deepEqual(await invoke(ex, "fails", { how: "lost" }, { onUncertain: "park" }), { uncertain: { reason: "the bank hung up" } });
  assert.deepEqual(await invoke(ex, "fails", { how: "output" }), { success: false, error: "the function's output cannot be written as JSON: it is a symbol", cause: "invalid_output" });
  const crashed = { success: false, error: "function crashed", cause: "panic" };
  assert.deepEqual(await invoke(ex, "fails", { how: "crash" }), crashed);
  assert.deepEqual(await invoke(ex, "fails", { how: "exit" }), crashed);
  assert.deepEqual(await invoke(ex, "missing"), crashed);
});
