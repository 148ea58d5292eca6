package io.callfan.executor.internal.wire;

/** Says why a message is no call. */
public final class NotACall extends Exception {
    public NotACall(String message) {
        super(message);
    }
}
