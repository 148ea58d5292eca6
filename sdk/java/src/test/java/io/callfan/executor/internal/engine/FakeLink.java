package io.callfan.executor.internal.engine;

import io.callfan.executor.CallKey;
import io.callfan.executor.internal.wire.Binding;
import io.callfan.executor.internal.wire.Definition;
import io.callfan.executor.internal.wire.Dispatch;
import io.callfan.executor.internal.wire.Outcome;
import io.callfan.executor.internal.wire.Standing;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/** A queue in this process. */
final class FakeLink implements Link {
    /** A stored outcome. */
    record Stored(Dispatch d, Outcome outcome) {}

    /** Stores an outcome, or does not. */
    interface Storing {
        void store(Outcome outcome) throws LinkException;
    }

    final List<Stored> reports = new CopyOnWriteArrayList<>();
    final AtomicInteger lookups = new AtomicInteger();
    final Moment served = new Moment();
    long ackWaitMs = 30_000;
    volatile Standing standing = Standing.PENDING;
    volatile Storing storing = outcome -> {};
    private final BlockingQueue<Taken> queue = new LinkedBlockingQueue<>();
    private volatile BiConsumer<CallKey, String> cancelled;

    void add(Taken message) {
        queue.add(message);
    }

    void cancel(CallKey key) {
        cancelled.accept(key, "the turn has ended");
    }

    @Override
    public Binding register(List<Definition> definitions, Moment until) {
        return new Binding("FN_CALLS", "pool_test", ackWaitMs, 1 << 20, "fn.result.", 30_000);
    }

    @Override
    public void pull(Binding binding, int n, Moment until, Consumer<Taken> each) throws InterruptedException {
        served.fire();
        for (int got = 0; got < n && !until.happened(); ) {
            Taken next = queue.poll(5, TimeUnit.MILLISECONDS);
            if (next != null) {
                got++;
                each.accept(next);
            }
        }
    }

    @Override
    public Standing lookup(Dispatch d, Moment until) {
        lookups.incrementAndGet();
        return standing;
    }

    @Override
    public void report(Dispatch d, Outcome outcome, Moment until) throws LinkException {
        storing.store(outcome);
        reports.add(new Stored(d, outcome));
    }

    @Override
    public void onCancel(List<String> functions, BiConsumer<CallKey, String> listener) {
        cancelled = listener;
    }

    @Override
    public void close() {}
}
