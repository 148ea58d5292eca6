package io.callfan.executor.internal.engine;

import io.callfan.executor.internal.wire.Pulls;
import java.util.function.IntConsumer;

/** Counts the calls that may still be started, and has them pulled. */
final class Slots {
    /** The number of free slots at which a pull does not wait for more. */
    private static final int PULL_BATCH = 16;
    /** How long a free slot waits for others to be pulled together. */
    private static final long GATHER_MS = 1;

    private final Threads threads;
    private final IntConsumer pull;
    private final int worth;
    private int free;
    private boolean open;
    private boolean lingering;

    /** pull must return at once. */
    Slots(int total, Threads threads, IntConsumer pull) {
        this.free = total;
        this.worth = Math.min(PULL_BATCH, total);
        this.threads = threads;
        this.pull = pull;
    }

    /** Begins to pull. */
    synchronized void start() {
        open = true;
        take(worth);
    }

    /** Pulls no more. */
    synchronized void stop() {
        open = false;
    }

    synchronized void release(int n) {
        if (n <= 0) {
            return;
        }
        free += n;
        take(worth);
        if (open && free > 0 && !lingering) {
            lingering = true;
            threads.after(GATHER_MS, this::gathered);
        }
    }

    /** Takes a slot that may not be free, for a call that nobody asked for any more. */
    synchronized void borrow() {
        free--;
    }

    private synchronized void gathered() {
        lingering = false;
        take(1);
    }

    private void take(int atLeast) {
        while (open && free > 0 && free >= atLeast) {
            int n = Math.min(free, Pulls.LARGEST);
            free -= n;
            pull.accept(n);
        }
    }
}
