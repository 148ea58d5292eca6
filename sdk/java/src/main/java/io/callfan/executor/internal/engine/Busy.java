package io.callfan.executor.internal.engine;

import java.util.concurrent.TimeUnit;

/** Counts what is under way. */
final class Busy {
    private int count;

    synchronized void begin() {
        count++;
    }

    synchronized void end() {
        if (--count == 0) {
            notifyAll();
        }
    }

    /** Waits until nothing is under way, for so long at most, or until the moment; whether nothing is. */
    boolean settled(long ms, Moment impatient) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);
        Runnable forget = impatient.on(this::wake);
        try {
            synchronized (this) {
                while (count > 0 && !impatient.happened()) {
                    long left = end - System.nanoTime();
                    if (left <= 0) {
                        break;
                    }
                    TimeUnit.NANOSECONDS.timedWait(this, left);
                }
                return count == 0;
            }
        } finally {
            forget.run();
        }
    }

    private synchronized void wake() {
        notifyAll();
    }
}
