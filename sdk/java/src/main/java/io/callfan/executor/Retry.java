package io.callfan.executor;

import java.time.Duration;
import java.util.Objects;

/**
 * Thrown by a handler: a technical failure. The model is not told; the dispatcher decides by the function's policy whether
 * the call is run again. When it gives up, the model gets the reason.
 */
public class Retry extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** The shortest wait; zero leaves it to the dispatcher. */
    private final Duration after;

    /** A failure after which the dispatcher decides how long to wait. */
    public Retry(String reason) {
        this(reason, Duration.ZERO);
    }

    /** @param after the shortest wait, at most seven days */
    public Retry(String reason, Duration after) {
        super(reason);
        this.after = Objects.requireNonNull(after, "after");
    }

    /** @param cause for the program; neither the model nor the log gets it */
    public Retry(String reason, Throwable cause) {
        super(reason, cause);
        this.after = Duration.ZERO;
    }

    public Duration after() {
        return after;
    }
}
