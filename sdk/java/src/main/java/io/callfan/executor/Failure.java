package io.callfan.executor;

/**
 * Thrown by a handler: a business failure. Its text goes to the model; the call is never retried. Extend it for failures of
 * your own.
 */
public class Failure extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** May be null. */
    private final String word;

    /** A failure with a text for the model. */
    public Failure(String text) {
        this(text, (String) null);
    }

    /** @param word a short machine word of [a-z_]{1,32} for counters; use few distinct words */
    public Failure(String text, String word) {
        super(text);
        this.word = word;
    }

    /** @param cause for the program; neither the model nor the log gets it */
    public Failure(String text, Throwable cause) {
        super(text, cause);
        this.word = null;
    }

    /** The word for counters, the cause of the protocol; null when there is none. */
    public String word() {
        return word;
    }
}
