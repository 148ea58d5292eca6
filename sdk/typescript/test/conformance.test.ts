import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { callfan } from "./callfan.js";
import { root } from "./fixture.js";

test("the conformance suite passes in full", { timeout: 600_000 }, () => {
  const executor = `node '${root}sdk/typescript/build/conformance-executor.js'`;
  const ran = spawnSync(callfan(), ["conformance", "--executor", executor], { encoding: "utf8", maxBuffer: 1 << 26 });
  const output = ran.stdout + ran.stderr;
  const report = JSON.parse(ran.stdout.trimEnd().split("\n").at(-1) ?? "") as Record<string, unknown>;
  assert.deepEqual([report["language"], report["level"]], ["typescript", "full"]);
  assert.deepEqual([report["failed_tests"], report["skipped_tests"]], [[], []], output);
  assert.ok(Number(report["passed"]) >= 100, output);
  assert.equal(ran.status, 0, output);
});
