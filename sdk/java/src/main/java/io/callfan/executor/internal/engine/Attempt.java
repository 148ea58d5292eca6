package io.callfan.executor.internal.engine;

import static io.callfan.executor.internal.engine.Log.LOG;
import static io.callfan.executor.internal.engine.Log.about;

import io.callfan.executor.Failure;
import io.callfan.executor.OnUncertain;
import io.callfan.executor.Retry;
import io.callfan.executor.Uncertain;
import io.callfan.executor.internal.wire.Dispatch;
import io.callfan.executor.internal.wire.Outcome;
import io.callfan.executor.internal.wire.Texts;
import java.time.Duration;

/** One run of a handler. */
final class Attempt extends Running<String> {
    private static final Duration LONGEST_AFTER = Duration.ofDays(7);

    Attempt(Threads threads, Registered f, Dispatch d, Moment hardStop, boolean uncertain) {
        super(threads, f, d, hardStop, uncertain, "function", f.run());
    }

    /** Waits for what the attempt comes to. */
    Ending ending() throws InterruptedException {
        Returned<String> result = await();
        if (cancelled()) {
            return Ending.dropped("cancelled");
        }
        if (result != null && result.error() == null && !timedOut()) {
            return Ending.reported(new Outcome.Success(result.value()), "success");
        }
        if (interrupted()) {
            return cutOff(); // the error, if there is one, is most likely the interruption's
        }
        if (result == null || timedOut()) {
            return late();
        }
        return thrown(result.error());
    }

    private Ending thrown(Throwable error) {
        if (error instanceof Retry retry) {
            return Ending.reported(new Outcome.Again(textOf(error), millisecondsOf(retry.after())), "retry");
        }
        if (error instanceof Uncertain) {
            return lost(textOf(error));
        }
        if (error instanceof Failure failure) {
            return Ending.reported(new Outcome.Failed(textOf(error), failure.word()), failure.word() == null ? "handler" : failure.word());
        }
        if (error instanceof InvalidOutput) {
            return Ending.failed("invalid_output", error.getMessage());
        }
        about(LOG.atError(), d).setCause(error).log("function crashed");
        return Ending.failed("panic", Wording.PANIC);
    }

    /** What may be run again is retried, what can be verified is left to its lease, of any other the outcome is unknown. */
    private Ending lost(String why) {
        if (f.choice(d) == OnUncertain.RERUN) {
            return Ending.reported(new Outcome.Again(why, 0), "retry");
        }
        return f.verifiable(d) && f.verify() != null ? Ending.LEFT_TO_LEASE : Ending.unknownOutcome(f, d, why);
    }

    private Ending late() {
        String took = "timed out after " + Texts.duration(deadlineMs - beganMs);
        if (d.deadlineMs() != null && deadlineMs == d.deadlineMs()) {
            return Ending.failed("deadline", took + ", at the call's deadline");
        }
        return Ending.failed("timeout", took);
    }

    /** What may be run again is given back, what can be verified is left to its lease, of any other the outcome is unknown. */
    private Ending cutOff() {
        if (f.choice(d) == OnUncertain.RERUN) {
            return Ending.RELEASED;
        }
        return f.verifiable(d) ? Ending.LEFT_TO_LEASE : Ending.unknownOutcome(f, d, Wording.INTERRUPTED);
    }

    private static String textOf(Throwable error) {
        return error.getMessage() == null || error.getMessage().isBlank() ? Wording.SILENT_FAILURE : error.getMessage();
    }

    private static long millisecondsOf(Duration after) {
        if (after.isNegative()) {
            return 0;
        }
        return after.compareTo(LONGEST_AFTER) > 0 ? LONGEST_AFTER.toMillis() : after.toMillis();
    }
}
