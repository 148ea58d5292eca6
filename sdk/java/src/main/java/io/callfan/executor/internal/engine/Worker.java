package io.callfan.executor.internal.engine;

import static io.callfan.executor.internal.engine.Log.LOG;
import static io.callfan.executor.internal.engine.Log.about;

import io.callfan.executor.PermissionDeniedException;
import io.callfan.executor.RegistrationRefusedException;
import io.callfan.executor.internal.wire.Binding;
import io.callfan.executor.internal.wire.Definition;
import io.callfan.executor.internal.wire.Dispatch;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;

/** One run of an executor over a link. */
public final class Worker {
    /** How often to register again when the binding does not say, and the least time between two registrations. */
    private static final long DEFAULT_REFRESH_MS = 30_000;

    private static final long REBIND_PAUSE_MS = 1000;
    /** How long outcomes may still be reported after the hard stop. */
    private static final long REPORT_GRACE_MS = 5000;
    /** The waits after a pull that failed, doubling. */
    private static final long PULL_RETRY_FIRST_MS = 100;

    private static final long PULL_RETRY_LAST_MS = 5000;

    /** How a worker runs. */
    public record Settings(String pool, String executorId, int concurrency, long stopTimeoutMs) {}

    /** No more calls are started. */
    final Moment soft = new Moment();
    /** Handlers are interrupted. */
    final Moment hard = new Moment();
    /** Outcomes are given up. */
    final Moment reporting = new Moment();
    /** How many handlers did not return. */
    final AtomicInteger abandoned = new AtomicInteger();

    final Leases leases = new Leases();
    final Link link;
    final Threads threads;
    private final Map<String, Registered> functions;
    private final Settings settings;
    private final Inflight inflight = new Inflight();
    private final Slots slots;
    private final Busy busy = new Busy();
    private final Moment impatient = new Moment();
    private final AtomicInteger failures = new AtomicInteger();
    private volatile Moment rebind = new Moment();
    private volatile Binding binding;

    public Worker(Link link, Threads threads, Map<String, Registered> functions, Settings settings) {
        this.link = link;
        this.threads = threads;
        this.functions = functions;
        this.settings = settings;
        this.slots = new Slots(settings.concurrency(), threads, n -> track(() -> pull(n)));
    }

    /** Registers, runs calls until the soft stop, and stops in order. It throws when the functions are refused. */
    public void serve() throws InterruptedException {
        try {
            serveUntilStopped();
        } finally {
            soft.fire();
            leases.stop();
        }
    }

    private void serveUntilStopped() throws InterruptedException {
        if (!register()) {
            return; // stopped before anything began
        }
        link.onCancel(definitions().stream().map(Definition::name).toList(), (key, reason) -> {
            if (inflight.cancel(key)) {
                LOG.atInfo()
                        .addKeyValue("session_id", key.sessionId())
                        .addKeyValue("turn_id", key.turnId())
                        .addKeyValue("call_id", key.callId())
                        .addKeyValue("reason", reason)
                        .log("call cancelled");
            }
        });
        LOG.atInfo()
                .addKeyValue("pool", settings.pool())
                .addKeyValue("functions", functions.size())
                .addKeyValue("concurrency", settings.concurrency())
                .addKeyValue("executor_id", settings.executorId())
                .log("executor serves");
        Moment ended = new Moment();
        threads.engine(() -> {
            try {
                keepRegistered();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            } finally {
                ended.fire();
            }
        });
        slots.start();
        try {
            soft.await();
            finish();
        } finally {
            soft.fire();
            ended.await();
        }
    }

    /** Begins to stop. */
    public void stop() {
        soft.fire();
    }

    /** Interrupts running handlers without waiting for the stop timeout. */
    public void interrupt() {
        impatient.fire();
    }

    /** How many handlers did not return. */
    public int abandoned() {
        return abandoned.get();
    }

    /** Waits for the calls in hand, and interrupts them after the stop timeout. */
    private void finish() throws InterruptedException {
        LOG.atInfo().addKeyValue("pool", settings.pool()).addKeyValue("stop_timeout_ms", settings.stopTimeoutMs()).log("executor stops");
        slots.stop();
        if (busy.settled(settings.stopTimeoutMs(), impatient)) {
            return;
        }
        LOG.atWarn().addKeyValue("stop_timeout_over", !impatient.happened()).log("running handlers are interrupted");
        hard.fire();
        if (busy.settled(Running.RETURN_GRACE_MS + REPORT_GRACE_MS, new Moment())) {
            return;
        }
        reporting.fire();
        busy.settled(Running.RETURN_GRACE_MS + REPORT_GRACE_MS, new Moment());
    }

    private interface Work {
        void run() throws InterruptedException;
    }

    private void track(Work work) {
        busy.begin();
        threads.engine(() -> {
            try {
                work.run();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            } catch (RuntimeException | Error e) {
                LOG.atError().setCause(e).log("the executor has a fault; please report it");
            } finally {
                busy.end();
            }
        });
    }

    private List<Definition> definitions() {
        return functions.values().stream().map(Registered::definition).toList();
    }

    private boolean register() throws InterruptedException {
        Binding got = link.register(definitions(), soft);
        if (got == null) {
            return false;
        }
        if (binding == null || binding.ackWaitMs() != got.ackWaitMs()) {
            leases.start(got.ackWaitMs());
        }
        binding = got;
        return true;
    }

    /** Registers again as often as the binding says, and when pulls fail. */
    private void keepRegistered() throws InterruptedException {
        while (!soft.happened()) {
            long refreshMs = binding.refreshMs() > 0 ? binding.refreshMs() : DEFAULT_REFRESH_MS;
            Moment woken = new Moment();
            List<Runnable> forget = List.of(soft.on(woken::fire), rebind.on(woken::fire));
            woken.await((long) (refreshMs * ThreadLocalRandom.current().nextDouble(0.9, 1.1)));
            forget.forEach(Runnable::run);
            rebind = new Moment();
            if (soft.happened()) {
                return;
            }
            try {
                register();
            } catch (RegistrationRefusedException | PermissionDeniedException e) {
                LOG.atError().addKeyValue("error", e.getMessage()).log("functions could not be registered again; the earlier registration is used on");
            }
            soft.await(REBIND_PAUSE_MS);
        }
    }

    private void pull(int n) throws InterruptedException {
        Pulled pulled = new Pulled();
        try {
            link.pull(binding, n, soft, taken -> {
                if (!pulled.count()) {
                    slots.borrow(); // it came after its pull was given up
                }
                track(() -> {
                    try {
                        handle(taken);
                    } finally {
                        slots.release(1);
                    }
                });
            });
            if (failures.getAndSet(0) > 0 && !soft.happened()) {
                LOG.info("calls are pulled again");
            }
        } catch (LinkException | PermissionDeniedException e) {
            if (!soft.happened()) {
                pullFailed(e);
            }
        } finally {
            slots.release(n - pulled.close());
        }
    }

    /** Counts the calls of one pull. */
    private static final class Pulled {
        private int calls;
        private boolean closed;

        /** False when the pull is over. */
        synchronized boolean count() {
            if (!closed) {
                calls++;
            }
            return !closed;
        }

        synchronized int close() {
            closed = true;
            return calls;
        }
    }

    /** Waits, longer with every failure in a row, and has the functions registered again: the consumer may be gone. */
    private void pullFailed(Exception e) throws InterruptedException {
        rebind.fire();
        if (e instanceof LinkException.PullAgain) {
            return;
        }
        int before = failures.getAndIncrement();
        if (before == 0) {
            LOG.atWarn().addKeyValue("error", e.getMessage()).log("calls cannot be pulled; trying on");
        }
        soft.await(Math.min(PULL_RETRY_FIRST_MS << Math.min(before, 10), PULL_RETRY_LAST_MS));
    }

    private void handle(Taken taken) throws InterruptedException {
        Dispatch d = taken.call();
        if (d == null) {
            invalid(taken);
            return;
        }
        Held held = inflight.add(d);
        if (held == null) {
            // The run in hand extends this delivery's lease as well, and its ack removes it.
            about(LOG.atWarn(), d).addKeyValue("deliveries", taken.deliveries()).log("call delivered again while it runs here");
            return;
        }
        Registered f = functions.get(d.function());
        if (d.deadlineMs() == null) {
            long timeoutMs = d.timeoutMs() != null ? d.timeoutMs() : f != null ? f.timeoutMs() : 0;
            d = d.withDeadline(System.currentTimeMillis() + Report.FOR_MS + timeoutMs);
        }
        Leases.Lease lease = leases.hold(d, taken, d.deadlineMs());
        try {
            new Delivery(this, taken, d, f, held, lease).handle();
        } finally {
            lease.drop();
            inflight.remove(d);
        }
    }

    /** Leaves a message that is no call to its lease, since a newer executor may understand it, and removes it after the crash limit. */
    private void invalid(Taken taken) {
        boolean removed = taken.deliveries() > Delivery.CRASH_LIMIT;
        LOG.atError()
                .addKeyValue("error", taken.fault())
                .addKeyValue("deliveries", taken.deliveries())
                .addKeyValue("removed", removed)
                .log("message is not a call");
        if (removed) {
            taken.term(taken.fault());
        }
    }
}
