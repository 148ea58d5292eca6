import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { callfan } from "./callfan.js";
import { root } from "./fixture.js";

function conformance(...more: string[]): { report: Record<string, unknown>; output: string; status: number | null } {
  const executor = `node '${root}sdk/typescript/build/conformance-executor.js'`;
  const ran = spawnSync(callfan(), ["conformance", "--executor", executor, ...more], { encoding: "utf8", maxBuffer: 1 << 26 });
  const report = JSON.parse(ran.stdout.trimEnd().split("\n").at(-1) ?? "") as Record<string, unknown>;
  return { report, output: ran.stdout + ran.stderr, status: ran.status };
}

test("the conformance suite passes in full", { timeout: 600_000 }, () => {
  const { report, output, status } = conformance();
  assert.deepEqual([report["language"], report["level"]], ["typescript", "full"]);
  assert.deepEqual([report["failed_tests"], report["skipped_tests"]], [[], []], output);
  assert.ok(Number(report["passed"]) >= 100, output);
  assert.equal(status, 0, output);
});

test("a handler that blocks the event loop keeps its lease", { timeout: 120_000 }, () => {
  process.env["CONFORMANCE_BLOCK"] = "event loop";
  const { report, output } = conformance("--run", "^leases/.*handler$");
  delete process.env["CONFORMANCE_BLOCK"];
  assert.deepEqual([report["passed"], report["failed"]], [2, 0], output);
});
