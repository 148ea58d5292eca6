package io.callfan.executor.internal.engine;

import io.callfan.executor.OnUncertain;
import io.callfan.executor.internal.wire.Dispatch;
import io.callfan.executor.internal.wire.Outcome;

/**
 * What is done with a delivered call.
 *
 * @param outcome reported, unless it is null
 * @param keep leaves the call in the stream; otherwise it is acked
 * @param reason why nothing is reported, or the kind
 */
public record Ending(Outcome outcome, boolean keep, String reason) {
    static final Ending RELEASED = reported(new Outcome.Released(), "released");
    /** Leaves the call to the next executor, which gets it as one that may have run. */
    static final Ending LEFT_TO_LEASE = new Ending(null, true, "left");

    static Ending reported(Outcome outcome, String reason) {
        return new Ending(outcome, false, reason);
    }

    static Ending failed(String cause, String error) {
        return reported(new Outcome.Failed(error, cause), cause);
    }

    static Ending uncertain(String reason) {
        return reported(new Outcome.Uncertain(reason), "uncertain");
    }

    static Ending dropped(String reason) {
        return new Ending(null, false, reason);
    }

    /** Ends a call that may have run and about which this executor finds out nothing more. why is for operators. */
    static Ending unknownOutcome(Registered f, Dispatch d, String why) {
        return f.choice(d) == OnUncertain.PARK ? uncertain(why) : failed("unknown_outcome", Wording.UNKNOWN_OUTCOME);
    }
}
