import assert from "node:assert/strict";
import { test } from "node:test";
import { Transit } from "#internal/link/transit.js";
import { heartbeatMs } from "#internal/wire/pulls.js";

test("a message is as old as the last sign of life", () => {
  const transit = new Transit(0);
  transit.asked(0, 2500);
  assert.deepEqual(transit.read(1000), { longestMs: 1000, ping: false });
  assert.deepEqual(transit.read(1500), { longestMs: 500, ping: false });
  transit.asked(3000, 2500);
  assert.deepEqual(transit.read(3100), { longestMs: 100, ping: false });
});

test("what ends a silence may be as old as it until the server answers", () => {
  const transit = new Transit(0);
  transit.asked(0, 2500);
  assert.deepEqual(transit.read(9000), { longestMs: 9000, ping: true });
  assert.deepEqual(transit.read(9010), { longestMs: 9010, ping: false });
  transit.asked(9015, 2500); // proves nothing about what is before the answer
  assert.deepEqual(transit.read(9030), { longestMs: 9030, ping: false });
  transit.answered();
  assert.deepEqual(transit.read(9040), { longestMs: 40, ping: false });
  assert.deepEqual(transit.read(9050), { longestMs: 10, ping: false });
});

test("a short lease has more heartbeats", () => {
  assert.deepEqual([heartbeatMs(30_000), heartbeatMs(0), heartbeatMs(3000)], [1000, 1000, 500]);
});
