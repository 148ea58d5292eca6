// What the thread of a Watchdog runs.
import { parentPort, workerData } from "node:worker_threads";
import { type NatsConnection, connect } from "@nats-io/transport-node";
import { configOf } from "../config.js";
import type { ToWatchdog, WatchdogData } from "./watchdog.js";

const { options, beaten: buffer } = workerData as WatchdogData;
const beaten = new BigInt64Array(buffer);
const held = new Map<number, { readonly reply: string; readonly untilMs: number }>();

let ackWaitMs = 30_000;
let connecting = false;
let connection: NatsConnection | undefined;
let extendedMs = 0;
let timer = setInterval(check, ackWaitMs / 6);

parentPort?.on("message", (message: ToWatchdog) => {
  if ("hold" in message) held.set(message.hold, message);
  else if ("drop" in message) held.delete(message.drop);
  else {
    ackWaitMs = message.ackWaitMs;
    clearInterval(timer);
    timer = setInterval(check, ackWaitMs / 6);
  }
});

/** The event loop extends leases every third of a lease; it is late when a twelfth more has passed. */
function check(): void {
  const now = Date.now();
  const late = now - Number(Atomics.load(beaten, 0)) > (ackWaitMs * 5) / 12;
  if (!late || held.size === 0 || now - extendedMs < ackWaitMs / 3) return;
  if (connection === undefined || connection.isClosed()) {
    void reach();
    return;
  }
  extendedMs = now;
  for (const { reply, untilMs } of held.values()) if (now < untilMs) connection.publish(reply, "+WPI");
}

async function reach(): Promise<void> {
  if (connecting) return;
  connecting = true;
  try {
    const { nats, id, pool } = configOf(options);
    connection = await connect({ ...nats(), name: `executor ${pool} ${id} leases` });
    check();
  } catch {
    // The event loop tells of a server that cannot be reached; the next check tries again.
  }
  connecting = false;
}
