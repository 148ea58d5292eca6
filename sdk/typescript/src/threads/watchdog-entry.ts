// What the thread of a Watchdog runs.
import { parentPort, workerData } from "node:worker_threads";
import { type NatsConnection, connect } from "@nats-io/transport-node";
import { configOf } from "../config.js";
import { Beats, monotonicMs } from "../engine/beats.js";
import type { ToWatchdog, WatchdogData } from "./watchdog.js";

interface Held {
  readonly reply: string;
  readonly untilMs: number;
}

const { options, beats: buffer } = workerData as WatchdogData;
const beats = new Beats(buffer);
const held = new Map<number, Held>();

let ackWaitMs = 30_000;
let connecting = false;
let connection: NatsConnection | undefined;
let timer = setInterval(check, ackWaitMs / 6);
/** The last beat was this thread's: the event loop does not turn. */
let mine = 0;

parentPort?.on("message", (messages: readonly ToWatchdog[]) => {
  for (const message of messages) told(message);
});

function told(message: ToWatchdog): void {
  if ("hold" in message) {
    held.set(message.hold, message);
    if (mine > 0 && mine === beats.lastMs) extend(message); // nobody knows when it was delivered
  } else if ("drop" in message) held.delete(message.drop);
  else {
    ackWaitMs = message.ackWaitMs;
    clearInterval(timer);
    timer = setInterval(check, ackWaitMs / 6);
  }
}

/** Leases are to be extended every third of their time; the event loop is late when a twelfth more has passed. */
function check(): void {
  const now = monotonicMs();
  const last = beats.lastMs;
  const patience = mine > 0 && mine === last ? ackWaitMs / 3 : (ackWaitMs * 5) / 12;
  if (last === 0 || held.size === 0 || now - last < patience) return;
  if (connection === undefined || connection.isClosed()) {
    void reach();
    return;
  }
  beats.beat(now, ackWaitMs);
  mine = beats.lastMs;
  for (const call of held.values()) extend(call);
}

function extend({ reply, untilMs }: Held): void {
  if (Date.now() < untilMs) connection?.publish(reply, "+WPI");
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
