package io.callfan.executor.internal.engine;

import io.callfan.executor.OnUncertain;
import io.callfan.executor.internal.wire.Dispatch;

/** Decides about a call that may have run and is not answered. */
final class Uncertainty {
    private Uncertainty() {}

    /** Asks the verify handler; null lets the call run. */
    @FunctionalInterface
    interface Verify {
        Ending ask() throws InterruptedException;
    }

    /** What the choice says; null lets the call run. */
    static Ending resolve(Registered f, Dispatch d, Verify verify) throws InterruptedException {
        if (f.choice(d) == OnUncertain.RERUN) {
            return null;
        }
        if (!f.verifiable(d)) {
            return Ending.unknownOutcome(f, d, Wording.MAY_HAVE_RUN);
        }
        return f.verifies() ? verify.ask() : Ending.uncertain(Wording.NO_VERIFY);
    }
}
