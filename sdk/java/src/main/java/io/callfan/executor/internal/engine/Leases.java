package io.callfan.executor.internal.engine;

import static io.callfan.executor.internal.engine.Log.LOG;
import static io.callfan.executor.internal.engine.Log.about;

import io.callfan.executor.internal.wire.Dispatch;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/** Extends the leases of all held calls every third of the lease, on a thread that no handler can stop. */
final class Leases {
    private static final long DEFAULT_ACK_WAIT_MS = 30_000;
    /** How long it takes at most to read what arrived while the process stood still. */
    private static final long DOUBT_MS = 1000;

    private final Set<Lease> held = ConcurrentHashMap.newKeySet();
    private final ScheduledThreadPoolExecutor beats =
            new ScheduledThreadPoolExecutor(1, Threads.named("callfan-leases", Thread.MAX_PRIORITY));
    private final LongSupplier clock;
    private long ackWaitMs = DEFAULT_ACK_WAIT_MS;
    private ScheduledFuture<?> beating;
    private long beatenMs = -1;
    private long doubtUntilMs = Long.MIN_VALUE;

    Leases() {
        this(() -> TimeUnit.NANOSECONDS.toMillis(System.nanoTime()));
    }

    Leases(LongSupplier clock) {
        this.clock = clock;
    }

    synchronized void start(long ms) {
        ackWaitMs = ms > 0 ? ms : DEFAULT_ACK_WAIT_MS;
        if (beatenMs < 0) { // no call comes before this: a standstill that begins before the first beat shows, too
            beatenMs = clock.getAsLong();
        }
        if (beating != null) {
            beating.cancel(false);
        }
        beating = beats.scheduleWithFixedDelay(this::beat, 0, Math.max(ackWaitMs / 3, 1), TimeUnit.MILLISECONDS);
    }

    void stop() {
        beats.shutdownNow();
    }

    /** Keeps extending until then, milliseconds since 1970, or until it is dropped. */
    Lease hold(Dispatch d, Taken taken, long untilMs) {
        Lease lease = new Lease(d, taken, untilMs);
        held.add(lease);
        return lease;
    }

    /**
     * Whether a call that is about to be started may be with another executor: this process stood still for most of a lease,
     * and what was delivered before is only read now. Its delivery count was true when it was sent.
     */
    synchronized boolean doubtful() {
        alive();
        return clock.getAsLong() < doubtUntilMs;
    }

    /**
     * Whether a call that was on its way for so long may be with another executor: its lease began when the server sent it.
     * Half a lease is left for what comes until the first renewal arrives.
     */
    synchronized boolean late(long transitMs) {
        return transitMs > ackWaitMs / 2;
    }

    void beat() {
        synchronized (this) {
            alive();
        }
        for (Lease lease : held) {
            if (System.currentTimeMillis() >= lease.untilMs) {
                continue;
            }
            try {
                lease.taken.inProgress();
            } catch (RuntimeException e) {
                about(LOG.atDebug(), lease.d).addKeyValue("error", Log.textOf(e)).log("lease was not extended");
            }
        }
    }

    private void alive() {
        long now = clock.getAsLong();
        long still = beatenMs < 0 ? 0 : now - beatenMs;
        if (still > ackWaitMs * 0.9) {
            doubtUntilMs = now + DOUBT_MS;
        }
        if (still > ackWaitMs * 0.5) {
            LOG.atWarn().addKeyValue("still_ms", still).log("the process stood still, or its machine is overloaded");
        }
        beatenMs = now;
    }

    /** The hold on one delivered call. */
    final class Lease {
        private final Dispatch d;
        private final Taken taken;
        private volatile long untilMs;

        private Lease(Dispatch d, Taken taken, long untilMs) {
            this.d = d;
            this.taken = taken;
            this.untilMs = untilMs;
        }

        /** Holds it until then, if that is later. */
        void holdUntil(long ms) {
            untilMs = Math.max(untilMs, ms);
        }

        void drop() {
            held.remove(this);
        }
    }
}
