package io.callfan.executor.internal.engine;

/** A handler's output that cannot be written. Its text goes to the model. */
public final class InvalidOutput extends Exception {
    private static final long serialVersionUID = 1;

    public InvalidOutput(String message) {
        super(message);
    }
}
