package io.callfan.executor.internal.wire;

/** How pulls are asked for. A short heartbeat finds a lost pull soon. */
public final class Pulls {
    public static final long SILENCE_MS = 2500;
    public static final int LARGEST = 256;

    private static final long EXPIRES_MS = 10_000;
    private static final long HEARTBEAT_MS = 1000;
    private static final long HEARTBEATS_PER_LEASE = 6;
    private static final long BYTES = 16L << 20;

    private Pulls() {}

    /**
     * How often a pull says that it is alive. Without it, a call that comes to an idle pull may have been on its way since the
     * last time.
     */
    public static long heartbeatMs(long ackWaitMs) {
        return ackWaitMs > 0 ? Math.min(HEARTBEAT_MS, ackWaitMs / HEARTBEATS_PER_LEASE) : HEARTBEAT_MS;
    }

    public static String request(int batch, long maxPayload, long ackWaitMs) {
        return "{\"batch\":" + batch + ",\"expires\":" + EXPIRES_MS * 1_000_000 + ",\"idle_heartbeat\":" + heartbeatMs(ackWaitMs) * 1_000_000
                + ",\"max_bytes\":" + Math.max(BYTES, 2 * maxPayload) + "}";
    }

    /** What to do about a status message of a pull. */
    public enum Action {
        CONTINUE,
        ENDED,
        REGISTER,
        PULL_AGAIN,
        ASK_CONSUMER_INFO,
        FAULT
    }

    public static Action action(int code, String description) {
        return switch (code) {
            case 100 -> Action.CONTINUE;
            case 404, 408 -> Action.ENDED;
            case 409 -> switch (description) {
                case "Batch Completed", "Message Size Exceeds MaxBytes" -> Action.ENDED;
                case "Consumer Deleted" -> Action.REGISTER;
                default -> Action.PULL_AGAIN;
            };
            case 503 -> Action.ASK_CONSUMER_INFO;
            case 400 -> Action.FAULT;
            default -> Action.PULL_AGAIN;
        };
    }

    /** How many of the calls asked for will not come, by the header Nats-Pending-Messages. */
    public static int pending(String header) {
        return header != null && header.matches("[0-9]{1,9}") ? Integer.parseInt(header) : 0;
    }
}
