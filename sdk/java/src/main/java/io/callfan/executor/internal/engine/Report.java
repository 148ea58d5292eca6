package io.callfan.executor.internal.engine;

import static io.callfan.executor.internal.engine.Log.LOG;
import static io.callfan.executor.internal.engine.Log.about;

import io.callfan.executor.PermissionDeniedException;
import io.callfan.executor.internal.wire.Dispatch;
import io.callfan.executor.internal.wire.InvalidOutcome;
import io.callfan.executor.internal.wire.Outcome;
import java.util.List;

/** Publishes an outcome, again and again while the server does not store it, with the lease held all the while. */
final class Report {
    /** How long, at least, an outcome is tried to be reported. */
    static final long FOR_MS = 60_000;

    private static final long RETRY_FIRST_MS = 100;
    private static final long RETRY_LAST_MS = 5000;

    private final Worker worker;
    private final Dispatch d;
    private final Leases.Lease lease;

    Report(Worker worker, Dispatch d, Leases.Lease lease) {
        this.worker = worker;
        this.d = d;
        this.lease = lease;
    }

    /** Whether it was stored. */
    boolean store(Outcome outcome) throws InterruptedException {
        long untilMs = Math.max(System.currentTimeMillis() + FOR_MS, d.deadlineMs());
        lease.holdUntil(untilMs);
        Moment over = new Moment();
        List<Runnable> release =
                List.of(worker.reporting.on(over::fire), worker.threads.after(untilMs - System.currentTimeMillis(), over::fire));
        try {
            return store(outcome, over);
        } finally {
            release.forEach(Runnable::run);
        }
    }

    private boolean store(Outcome first, Moment over) throws InterruptedException {
        Outcome outcome = first;
        String failure = "the executor stops";
        for (long wait = RETRY_FIRST_MS; !over.happened(); wait = Math.min(2 * wait, RETRY_LAST_MS)) {
            try {
                worker.link.report(d, outcome, over);
                return true;
            } catch (LinkException.TooLarge e) {
                failure = e.getMessage();
                if (!causeOf(outcome).equals("too_large")) {
                    outcome = new Outcome.Failed(e.getMessage(), "too_large");
                    continue;
                }
            } catch (InvalidOutcome e) {
                failure = e.getMessage();
                if (!causeOf(outcome).equals("invalid_output")) {
                    about(LOG.atError(), d).addKeyValue("error", e.getMessage()).log("outcome is not valid; the model is told");
                    outcome = new Outcome.Failed("the function's output is not valid", "invalid_output");
                    continue;
                }
            } catch (PermissionDeniedException e) {
                failure = e.getMessage();
                break;
            } catch (LinkException e) {
                failure = e.getMessage();
                if (wait == RETRY_FIRST_MS && !over.happened()) {
                    about(LOG.atWarn(), d).addKeyValue("error", failure).log("outcome was not stored; trying on");
                }
            }
            over.await(wait);
        }
        about(LOG.atError(), d).addKeyValue("error", failure).log("outcome could not be reported; the call will be delivered again");
        return false;
    }

    private static String causeOf(Outcome outcome) {
        return outcome instanceof Outcome.Failed failed && failed.cause() != null ? failed.cause() : "";
    }
}
