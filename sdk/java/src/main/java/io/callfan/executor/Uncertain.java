package io.callfan.executor;

/**
 * Thrown by a handler: its run was lost and may have taken effect, as when a downstream went away before it answered. What
 * follows is the function's {@link OnUncertain}: a function that may be run again has a technical failure, as by {@link Retry};
 * one that can be verified has its verify handler asked after the lease; of any other the model is told that the outcome is
 * unknown, or an operator decides.
 */
public class Uncertain extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** @param reason for operators */
    public Uncertain(String reason) {
        super(reason);
    }

    /** @param cause for the program; neither the model nor the log gets it */
    public Uncertain(String reason, Throwable cause) {
        super(reason, cause);
    }
}
