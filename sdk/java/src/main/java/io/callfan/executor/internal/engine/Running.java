package io.callfan.executor.internal.engine;

import static io.callfan.executor.internal.engine.Log.LOG;
import static io.callfan.executor.internal.engine.Log.about;

import io.callfan.executor.internal.wire.Dispatch;
import java.util.List;

/** One entry into the user's code, a handler or a verify handler, on a thread of its own that an end of its time interrupts. */
abstract class Running<T> {
    /** How long a handler may take to return after its interruption, before its slot is given to another call. */
    static final long RETURN_GRACE_MS = 1000;

    final long beganMs = System.currentTimeMillis();
    final long deadlineMs;
    final Registered f;
    final Dispatch d;
    private final String handler;
    private final List<Runnable> release;
    private final Moment aborted = new Moment();
    private final Moment returned = new Moment();
    private final Moment over = new Moment();
    private Thread thread;
    private Cause cause;
    private Returned<T> result;

    private enum Cause {
        TIMEOUT,
        CANCELLED,
        STOPPED
    }

    /** What the code came to: error is null if it returned a value. */
    record Returned<T>(T value, Throwable error) {}

    Running(Threads threads, Registered f, Dispatch d, Moment hardStop, boolean uncertain, String handler, Registered.Code<T> code) {
        this.f = f;
        this.d = d;
        this.handler = handler;
        long timeoutMs = d.timeoutMs() != null ? d.timeoutMs() : f.timeoutMs();
        deadlineMs = Math.min(beganMs + timeoutMs, d.deadlineMs() != null ? d.deadlineMs() : Long.MAX_VALUE);
        RunningCall call = new RunningCall(d, deadlineMs, uncertain, threads, aborted);
        release = List.of(threads.after(deadlineMs - beganMs, () -> abort(Cause.TIMEOUT)), hardStop.on(() -> abort(Cause.STOPPED)));
        threads.handler(() -> enter(code, call));
    }

    private void enter(Registered.Code<T> code, RunningCall call) {
        synchronized (this) {
            thread = Thread.currentThread();
            if (cause != null) {
                thread.interrupt();
            }
        }
        Returned<T> end;
        try {
            end = new Returned<>(code.run(call), null);
        } catch (Throwable e) { // NOPMD: a handler's StackOverflowError ends its call, not the executor
            end = new Returned<>(null, e);
        }
        synchronized (this) {
            thread = null; // from here on nobody interrupts this thread for the call
            result = end;
        }
        Thread.interrupted();
        returned.fire();
        over.fire();
    }

    private void abort(Cause why) {
        synchronized (this) {
            if (cause != null) {
                return;
            }
            cause = why;
        }
        aborted.fire(); // so that the interrupted handler finds its call cancelled
        synchronized (this) {
            if (thread != null) {
                thread.interrupt();
            }
        }
        over.fire();
    }

    /** Nobody waits for the result any more. */
    void cancel() {
        abort(Cause.CANCELLED);
    }

    synchronized boolean timedOut() {
        return cause == Cause.TIMEOUT;
    }

    synchronized boolean cancelled() {
        return cause == Cause.CANCELLED;
    }

    /** The executor's hard stop came. */
    synchronized boolean interrupted() {
        return cause == Cause.STOPPED;
    }

    private synchronized Returned<T> result() {
        return result;
    }

    /**
     * Waits for what the code comes to; null when it did not return before its time was over, the call was cancelled or, by a
     * grace, the executor stopped.
     */
    Returned<T> await() throws InterruptedException {
        over.await();
        if (result() == null && interrupted()) {
            returned.await(RETURN_GRACE_MS);
        }
        return result();
    }

    /** Gives up the code after a moment; true when it still did not return. What it returns later is ignored. */
    boolean leave() throws InterruptedException {
        release.forEach(Runnable::run);
        if (returned.await(RETURN_GRACE_MS)) {
            return false;
        }
        about(LOG.atWarn(), d).addKeyValue("handler", handler).log("handler does not return; its slot is given to other calls");
        returned.on(() -> about(LOG.atWarn(), d)
                .addKeyValue("handler", handler)
                .addKeyValue("late_by_ms", System.currentTimeMillis() - deadlineMs)
                .log("abandoned handler returned; its result is ignored"));
        return true;
    }
}
