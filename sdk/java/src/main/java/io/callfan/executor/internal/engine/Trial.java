package io.callfan.executor.internal.engine;

import io.callfan.executor.internal.wire.Dispatch;
import io.callfan.executor.internal.wire.Outcome;

/** One attempt without servers. */
public final class Trial {
    private Trial() {}

    /** What would be reported; null when nothing would be. cancelled cancels what runs when it happens. */
    public static Outcome run(Registered f, Dispatch d, Moment cancelled) throws InterruptedException {
        try (Threads threads = new Threads()) {
            Moment never = new Moment();
            if (d.uncertain()) {
                Ending end = Uncertainty.resolve(f, d, () -> {
                    Verification asked = new Verification(threads, f, d, never);
                    cancelled.on(asked::cancel);
                    Ending verdict = asked.ending();
                    asked.leave();
                    return verdict;
                });
                if (end != null) {
                    return end.outcome();
                }
            }
            Attempt attempt = new Attempt(threads, f, d, never, d.uncertain());
            cancelled.on(attempt::cancel);
            Ending end = attempt.ending();
            attempt.leave();
            return end.outcome();
        }
    }
}
