package io.callfan.executor.internal.engine;

import io.callfan.executor.internal.wire.Dispatch;
import java.util.concurrent.atomic.AtomicInteger;

/** A delivered message of a fake queue. */
final class FakeMessage implements Taken {
    final AtomicInteger acked = new AtomicInteger();
    final AtomicInteger extended = new AtomicInteger();
    final Moment over = new Moment();
    volatile long transitMs;
    volatile String terminated;
    private final Dispatch call;
    private final int deliveries;

    /** call is null for a message that is no call. */
    FakeMessage(Dispatch call, int deliveries) {
        this.call = call;
        this.deliveries = deliveries;
    }

    FakeMessage(Dispatch call) {
        this(call, 1);
    }

    @Override
    public Dispatch call() {
        return call;
    }

    @Override
    public String fault() {
        return call == null ? "no call" : null;
    }

    @Override
    public int deliveries() {
        return deliveries;
    }

    @Override
    public long transitMs() {
        return transitMs;
    }

    @Override
    public void inProgress() {
        extended.incrementAndGet();
    }

    @Override
    public void ack() {
        acked.incrementAndGet();
        over.fire();
    }

    @Override
    public void term(String reason) {
        terminated = reason;
        over.fire();
    }
}
