package io.callfan.executor.internal.engine;

import static io.callfan.executor.internal.engine.Log.LOG;
import static io.callfan.executor.internal.engine.Log.about;

import io.callfan.executor.Failure;
import io.callfan.executor.Retry;
import io.callfan.executor.Uncertain;
import io.callfan.executor.Verdict;
import io.callfan.executor.internal.wire.Dispatch;
import io.callfan.executor.internal.wire.Outcome;
import io.callfan.executor.internal.wire.Texts;

/** One run of a verify handler. */
final class Verification extends Running<Verdict> {
    Verification(Threads threads, Registered f, Dispatch d, Moment hardStop) {
        super(threads, f, d, hardStop, true, "verify", f.verify());
    }

    /** Waits for the verdict; null lets the call run. */
    Ending ending() throws InterruptedException {
        Returned<Verdict> result = await();
        Verdict verdict = result == null ? null : result.value();
        if (cancelled()) {
            return Ending.dropped("cancelled");
        }
        if (verdict != null && !timedOut() && verdict.finding() != Verdict.Finding.CANNOT_TELL) {
            about(LOG.atInfo(), d).addKeyValue("verdict", verdict.finding().name().toLowerCase(java.util.Locale.ROOT)).log("uncertain call was verified");
            return verdict.finding() == Verdict.Finding.NOT_DONE ? null : success(verdict.output());
        }
        if (interrupted()) {
            return Ending.LEFT_TO_LEASE;
        }
        if (result == null || timedOut()) {
            return Ending.uncertain("the verify handler did not answer within " + Texts.duration(deadlineMs - beganMs));
        }
        if (result.error() != null) {
            about(LOG.atError(), d).setCause(result.error()).log("verify handler failed");
            boolean told = result.error() instanceof Failure || result.error() instanceof Retry || result.error() instanceof Uncertain;
            return Ending.uncertain("the verify handler failed" + (told ? ": " + result.error().getMessage() : ""));
        }
        about(LOG.atWarn(), d).log("uncertain call could not be verified");
        boolean silent = verdict == null || verdict.reason().isEmpty();
        return Ending.uncertain(silent ? "the verify handler could not tell" : verdict.reason());
    }

    private Ending success(Object output) {
        try {
            return Ending.reported(new Outcome.Success(f.output().encode(output)), "verified");
        } catch (InvalidOutput e) {
            return Ending.failed("invalid_output", e.getMessage());
        }
    }
}
