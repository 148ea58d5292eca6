package io.callfan.executor.internal.nats;

/**
 * Bounds how long a message was on its way. The server does not tell when it sent one, and a network that fails for a while
 * delivers late what was sent before. But what arrives after something that the server said was sent after that, and what
 * arrives after the answer to a ping was sent after the ping (ADR 0012). Times are milliseconds of a clock that never jumps.
 */
final class Transit {
    /** A time before which none of the messages that are still to be read was sent. */
    private long sinceMs;
    /** The messages that follow a silence may all have been sent in it. A ping is under way. */
    private boolean doubted;
    private long silenceMs = Long.MAX_VALUE;

    private long pingedMs;
    /** How many messages stood before the ping's answer and were not read when it came; negative before it. */
    private long ahead = -1;

    Transit(long nowMs) {
        sinceMs = nowMs;
    }

    /**
     * Notes that a pull was sent: its messages come after that. For silenceMs at most, the server says nothing on a network that
     * is well.
     */
    synchronized void asked(long nowMs, long silenceMs) {
        this.silenceMs = silenceMs;
        if (!doubted) {
            sinceMs = nowMs;
        }
    }

    /** The longest that a message which is read now may have been on its way. ping is run when one is wanted. */
    synchronized long read(long nowMs, Runnable ping) {
        if (doubted && ahead == 0) {
            doubted = false;
            sinceMs = pingedMs;
        }
        long longest = nowMs - sinceMs;
        if (doubted) {
            if (ahead > 0) {
                ahead--;
            }
        } else if (longest > silenceMs) {
            doubted = true;
            pingedMs = nowMs;
            ahead = -1;
            ping.run();
        } else {
            sinceMs = nowMs;
        }
        return longest;
    }

    /** The ping is answered. unread messages had arrived before the answer. */
    synchronized void answered(long unread) {
        ahead = unread;
    }
}
