package io.callfan.executor.internal.engine;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** The threads of an executor: some that wait, some for handlers, and one for timers. All end with the program. */
public final class Threads implements AutoCloseable {
    private final ExecutorService engine = Executors.newCachedThreadPool(named("callfan-engine", Thread.NORM_PRIORITY));
    private final ExecutorService handlers = Executors.newCachedThreadPool(named("callfan-handler", Thread.NORM_PRIORITY));
    private final ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, named("callfan-timer", Thread.MAX_PRIORITY));

    public Threads() {
        timer.setRemoveOnCancelPolicy(true);
    }

    static ThreadFactory named(String name, int priority) {
        AtomicInteger count = new AtomicInteger();
        return work -> {
            Thread thread = new Thread(work, name + "-" + count.incrementAndGet());
            thread.setDaemon(true);
            thread.setPriority(priority);
            return thread;
        };
    }

    /** Runs work of the executor itself. */
    void engine(Runnable work) {
        engine.execute(work);
    }

    /** Runs the user's code. */
    void handler(Runnable work) {
        handlers.execute(work);
    }

    /** Runs a short action after so many milliseconds. What is returned takes it back. */
    Runnable after(long ms, Runnable action) {
        try {
            var scheduled = timer.schedule(action, Math.max(ms, 0), TimeUnit.MILLISECONDS);
            return () -> scheduled.cancel(false);
        } catch (RejectedExecutionException e) {
            return () -> {}; // closed
        }
    }

    /** Takes no more work. Handlers that do not return keep their threads. */
    @Override
    public void close() {
        engine.shutdown();
        handlers.shutdown();
        timer.shutdownNow();
    }
}
