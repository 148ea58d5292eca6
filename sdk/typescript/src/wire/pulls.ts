/** How pulls are asked for. A short heartbeat finds a lost pull soon. */
export const pullExpiresMs = 10_000;
const pullHeartbeatMs = 1000;
const heartbeatsPerLease = 6;
export const pullSilenceMs = 2500;
export const pullLargest = 256;
const pullBytes = 16 << 20;

/** How often a pull says that it is alive. Without it, a call that comes to an idle pull may have been on its way since the last time. */
export function heartbeatMs(ackWaitMs: number): number {
  return ackWaitMs > 0 ? Math.min(pullHeartbeatMs, ackWaitMs / heartbeatsPerLease) : pullHeartbeatMs;
}

export function pullRequest(batch: number, maxPayload: number, ackWaitMs: number): string {
  return JSON.stringify({
    batch,
    expires: pullExpiresMs * 1_000_000,
    idle_heartbeat: Math.floor(heartbeatMs(ackWaitMs) * 1_000_000),
    max_bytes: Math.max(pullBytes, 2 * maxPayload),
  });
}

/** What to do about a status message of a pull. */
export type PullAction = "continue" | "ended" | "register" | "pull_again" | "ask_consumer_info" | "fault";

/** Reads a status message; pending is how many of the calls asked for will not come. */
export function pullStatus(code: number, description: string, pendingMessages: string): { readonly action: PullAction; readonly pending: number } {
  const pending = /^\d{1,9}$/.test(pendingMessages) ? Number(pendingMessages) : 0;
  const action = ((): PullAction => {
    switch (code) {
      case 100:
        return "continue";
      case 404:
      case 408:
        return "ended";
      case 409:
        if (description === "Batch Completed" || description === "Message Size Exceeds MaxBytes") return "ended";
        return description === "Consumer Deleted" ? "register" : "pull_again";
      case 503:
        return "ask_consumer_info";
      case 400:
        return "fault";
      default:
        return "pull_again";
    }
  })();
  return { action, pending };
}
