package io.callfan.executor.internal.engine;

import static io.callfan.executor.internal.engine.Log.LOG;
import static io.callfan.executor.internal.engine.Log.about;

import io.callfan.executor.Effects;
import io.callfan.executor.OnUncertain;
import io.callfan.executor.PermissionDeniedException;
import io.callfan.executor.internal.wire.Dispatch;
import io.callfan.executor.internal.wire.Outcome;
import io.callfan.executor.internal.wire.Standing;
import java.util.ArrayList;
import java.util.List;

/** One delivered call on its way through the executor. */
final class Delivery {
    /** How many deliveries of one hand-over may end without an outcome. */
    static final int CRASH_LIMIT = 3;

    /** Keeps a call that nobody here serves from going round at full speed. */
    private static final long UNSERVED_MS = 250;
    /** The waits between look-ups that failed, doubling. */
    private static final long RETRY_FIRST_MS = 100;

    private static final long RETRY_LAST_MS = 5000;

    private final Worker worker;
    private final Taken taken;
    private final Dispatch d;
    private final Registered f;
    private final Held held;
    private final Leases.Lease lease;
    private final List<Running<?>> entered = new ArrayList<>();

    /** d has a deadline; f is null when the function is not served. */
    Delivery(Worker worker, Taken taken, Dispatch d, Registered f, Held held, Leases.Lease lease) {
        this.worker = worker;
        this.taken = taken;
        this.d = d;
        this.f = f;
        this.held = held;
        this.lease = lease;
    }

    /** Takes the call to its end: run it, or answer it without, report, ack. The order of the last two is what loses no result. */
    void handle() throws InterruptedException {
        settle(decide());
        for (Running<?> running : entered) {
            if (running.leave()) {
                worker.abandoned.incrementAndGet();
            }
        }
    }

    /** Runs the call, unless there is a reason to end it without. */
    private Ending decide() throws InterruptedException {
        if (f == null) {
            return unserved();
        }
        Ending end = mayHaveRun() ? again() : held.noticed ? wanted() : null;
        if (end != null) {
            return end;
        }
        if (held.cancelled()) {
            return Ending.dropped("cancelled");
        }
        if (worker.soft.happened()) {
            return Ending.RELEASED;
        }
        if (System.currentTimeMillis() >= d.deadlineMs()) {
            return Ending.failed("deadline", Wording.EXPIRED);
        }
        if ((worker.leases.doubtful() || worker.leases.late(taken.transitMs())) && f.choice(d) != OnUncertain.RERUN) {
            return stale();
        }
        Attempt attempt = new Attempt(worker.threads, f, d, worker.hard, mayHaveRun());
        entered.add(attempt);
        held.started(attempt::cancel);
        return attempt.ending();
    }

    private boolean mayHaveRun() {
        return taken.deliveries() > 1 || d.uncertain();
    }

    /** Ends a call that may be with another executor by now: the one that has it decides, or the next one after this lease. */
    private Ending stale() {
        about(LOG.atWarn(), d)
                .addKeyValue("transit_ms", taken.transitMs())
                .log("the process or its connection stood still for about a lease; a call that may be with another executor is not started");
        return f.choice(d) == OnUncertain.FAIL ? Ending.failed("unknown_outcome", Wording.UNKNOWN_OUTCOME) : Ending.LEFT_TO_LEASE;
    }

    /** Gives back a call of a function that is not handled here, as after a half-done rollout. */
    private Ending unserved() throws InterruptedException {
        about(LOG.atWarn(), d).log("call of a function that this executor does not serve; all processes of a pool must serve the same functions");
        worker.soft.await(UNSERVED_MS);
        return mayHaveRun() ? Ending.LEFT_TO_LEASE : Ending.RELEASED;
    }

    /** Decides about a call that may have run already; null lets it run. */
    private Ending again() throws InterruptedException {
        Standing standing = lookup();
        if (standing == Standing.ANSWERED) {
            return Ending.dropped("answered");
        }
        if (standing == Standing.CANCELLED || held.cancelled()) {
            return Ending.dropped("cancelled");
        }
        if (taken.deliveries() > CRASH_LIMIT) {
            return crashed();
        }
        return standing == null ? notLookedUp() : Uncertainty.resolve(f, d, this::verify);
    }

    /** Asks about a call that a cancel notice came before; null goes on with it. */
    private Ending wanted() throws InterruptedException {
        Standing standing = lookup();
        if (standing == Standing.ANSWERED) {
            return Ending.dropped("answered");
        }
        if (standing == Standing.CANCELLED) {
            return Ending.dropped("cancelled");
        }
        if (standing == null && !held.cancelled() && !worker.soft.happened()) {
            return Ending.failed("deadline", Wording.EXPIRED);
        }
        return null; // a cancelled call and a stopping executor are seen next
    }

    /** Ends a call whose earlier deliveries all ended without an outcome. */
    private Ending crashed() {
        if (f.effects() == Effects.NONE) {
            return Ending.failed("crashed", Wording.CRASHED);
        }
        if (f.choice(d) == OnUncertain.PARK) {
            return Ending.uncertain("it crashed its executor, or its executor was lost, " + (taken.deliveries() - 1) + " times in a row");
        }
        return Ending.failed("crashed", Wording.CRASHED + "; " + Wording.UNKNOWN_OUTCOME);
    }

    /** Ends a call about which no dispatcher answered before the executor stopped or the call's deadline passed. */
    private Ending notLookedUp() {
        boolean stopped = worker.soft.happened();
        if (f.choice(d) == OnUncertain.RERUN) {
            return stopped ? Ending.RELEASED : Ending.failed("deadline", Wording.EXPIRED);
        }
        if (stopped && f.verifiable(d)) {
            return Ending.LEFT_TO_LEASE;
        }
        return Ending.unknownOutcome(f, d, Wording.NOT_LOOKED_UP);
    }

    /** Asks the verify handler, with the lease kept; null lets the call run. */
    private Ending verify() throws InterruptedException {
        if (held.cancelled()) {
            return Ending.dropped("cancelled");
        }
        if (worker.soft.happened()) {
            return Ending.LEFT_TO_LEASE; // a release would make the call look fresh
        }
        if (System.currentTimeMillis() >= d.deadlineMs()) {
            return Ending.unknownOutcome(f, d, Wording.NOT_VERIFIED);
        }
        Verification asked = new Verification(worker.threads, f, d, worker.hard);
        entered.add(asked);
        held.started(asked::cancel);
        return asked.ending();
    }

    /** Asks until a dispatcher answers; null when the call is cancelled, its deadline passes or the executor stops. */
    private Standing lookup() throws InterruptedException {
        Moment over = new Moment();
        List<Runnable> release = List.of(
                worker.soft.on(over::fire), worker.threads.after(d.deadlineMs() - System.currentTimeMillis(), over::fire));
        held.started(over::fire);
        try {
            for (long wait = RETRY_FIRST_MS; !over.happened(); wait = Math.min(2 * wait, RETRY_LAST_MS)) {
                try {
                    return worker.link.lookup(d, over);
                } catch (LinkException.GivenUp e) {
                    break;
                } catch (LinkException | PermissionDeniedException e) {
                    if (wait == RETRY_FIRST_MS) {
                        about(LOG.atWarn(), d).addKeyValue("error", Log.textOf(e)).log("no dispatcher says whether a call is still wanted; asking on");
                    }
                }
                over.await(wait);
            }
            return null;
        } finally {
            release.forEach(Runnable::run);
        }
    }

    /** Reports and acks as the ending says. */
    private void settle(Ending end) throws InterruptedException {
        if (end.outcome() != null && !new Report(worker, d, lease).store(end.outcome())) {
            return;
        }
        if (!end.keep()) {
            taken.ack();
        }
        about(LOG.atDebug(), d).addKeyValue("reason", end.reason()).log("call ended");
    }
}
