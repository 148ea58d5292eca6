// The event log of protocol/conformance.md.
import { openSync, writeSync } from "node:fs";
import type { Call } from "callfan";

const file = openSync(process.env["CONFORMANCE_LOG"] ?? "/dev/null", "a");

export function log(event: "start" | "end" | "cancelled" | "effect" | "verify", call: Omit<Call, "signal">): void {
  const line = {
    event,
    function: call.function,
    call_id: call.key.callId,
    attempt: call.attempt,
    idempotency_key: call.idempotencyKey,
    at_ms: Date.now(),
    pid: process.pid,
  };
  writeSync(file, JSON.stringify(line) + "\n");
}
