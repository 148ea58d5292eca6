package io.callfan.executor.internal.wire;

/** An outcome that cannot be put on the wire. */
public final class InvalidOutcome extends Exception {
    InvalidOutcome(String message) {
        super(message);
    }
}
