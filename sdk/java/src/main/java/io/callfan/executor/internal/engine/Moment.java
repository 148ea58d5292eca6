package io.callfan.executor.internal.engine;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** Something that happens once, such as the stop of the executor. */
public final class Moment {
    private static final long LONGEST_MS = TimeUnit.DAYS.toMillis(365);

    private final Set<Listener> listeners = new LinkedHashSet<>();
    private boolean happened;

    /** Equal by identity, so that one Runnable may listen twice. */
    private static final class Listener {
        final Runnable action;

        Listener(Runnable action) {
            this.action = action;
        }
    }

    public synchronized boolean happened() {
        return happened;
    }

    /** Lets it happen, and runs the listeners in this thread. */
    public void fire() {
        List<Listener> told;
        synchronized (this) {
            if (happened) {
                return;
            }
            happened = true;
            notifyAll();
            told = List.copyOf(listeners);
            listeners.clear();
        }
        told.forEach(listener -> listener.action.run());
    }

    /** Runs action when it happens, or at once if it did. What is returned takes it back. */
    public Runnable on(Runnable action) {
        Listener listener = new Listener(action);
        synchronized (this) {
            if (!happened) {
                listeners.add(listener);
                return () -> forget(listener);
            }
        }
        action.run();
        return () -> {};
    }

    private synchronized void forget(Listener listener) {
        listeners.remove(listener);
    }

    /** Waits for so long at most; whether it happened. */
    public synchronized boolean await(long ms) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Math.min(Math.max(ms, 0), LONGEST_MS));
        while (!happened) {
            long left = end - System.nanoTime();
            if (left <= 0) {
                return false;
            }
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
        return true;
    }

    public synchronized void await() throws InterruptedException {
        while (!happened) {
            wait();
        }
    }
}
