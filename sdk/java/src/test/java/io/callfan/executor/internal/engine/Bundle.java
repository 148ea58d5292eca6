package io.callfan.executor.internal.engine;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.callfan.executor.CallKey;
import io.callfan.executor.Executor;
import io.callfan.executor.OnUncertain;
import io.callfan.executor.internal.wire.Calls;
import io.callfan.executor.internal.wire.Dispatch;
import io.callfan.executor.internal.wire.Outcome;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** Runs the functions of an executor over a fake link, until it is closed. */
final class Bundle implements AutoCloseable {
    private static final AtomicInteger COUNT = new AtomicInteger();
    private static final long WAIT_MS = 20_000;

    final FakeLink link;
    final Worker worker;
    private final Threads threads = new Threads();
    private final Thread serving;

    Bundle(Executor executor, FakeLink link, long stopTimeoutMs) {
        this.link = link;
        worker = new Worker(link, threads, executor.registered(), new Worker.Settings("test", "test-1", 8, stopTimeoutMs));
        serving = new Thread(() -> {
            try {
                worker.serve();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        serving.start();
    }

    Bundle(Executor executor) {
        this(executor, new FakeLink(), 5000);
    }

    /** Delivers a message, and waits until it is acked. */
    void settle(FakeMessage message) throws InterruptedException {
        link.add(message);
        await(message.over);
    }

    static void await(Moment moment) throws InterruptedException {
        assertTrue(moment.await(WAIT_MS), "waited for " + WAIT_MS + " ms");
    }

    List<Outcome> outcomes() {
        return link.reports.stream().map(FakeLink.Stored::outcome).toList();
    }

    @Override
    public void close() throws InterruptedException {
        await(link.served);
        worker.stop();
        serving.join(WAIT_MS);
        assertTrue(!serving.isAlive(), "the worker does not stop");
        threads.close();
    }

    static Executor executor() {
        return Executor.builder().pool("test").build();
    }

    static Dispatch dispatch(String function) {
        return dispatch(function, false, null);
    }

    static Dispatch dispatch(String function, boolean uncertain, OnUncertain choice) {
        CallKey key = new CallKey("sess_1", "turn_1", "call_" + COUNT.incrementAndGet());
        return new Dispatch(
                key, function, "{}".getBytes(UTF_8), 1, 1, "1-0123456789abcdefghijkl", "fn.result." + function + ".p07", Calls.idempotencyKey(key),
                null, System.currentTimeMillis() + 60_000, null, null, uncertain, choice);
    }
}
