package io.callfan.executor.internal.engine;

/** One call in this process, from its delivery to its end. */
final class Held {
    /** A cancel notice about the call came before it. */
    final boolean noticed;

    private boolean cancelled;
    private Runnable cancel = () -> {};

    Held(boolean noticed) {
        this.noticed = noticed;
    }

    synchronized boolean cancelled() {
        return cancelled;
    }

    void cancel() {
        Runnable now;
        synchronized (this) {
            cancelled = true;
            now = cancel;
        }
        now.run();
    }

    /** Tells how to cancel what is done with the call now; a notice that came earlier cancels it at once. */
    void started(Runnable how) {
        synchronized (this) {
            cancel = how;
            if (!cancelled) {
                return;
            }
        }
        how.run();
    }
}
