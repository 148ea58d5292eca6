package io.callfan.executor.internal.wire;

/** How a call stands with the dispatchers. */
public enum Standing {
    PENDING,
    ANSWERED,
    CANCELLED,
    UNKNOWN
}
