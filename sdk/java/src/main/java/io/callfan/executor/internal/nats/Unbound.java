package io.callfan.executor.internal.nats;

import io.callfan.executor.internal.engine.LinkException;

/** The consumer does not exist: register first. */
final class Unbound extends LinkException {
    private static final long serialVersionUID = 1;

    Unbound(String message) {
        super(message);
    }
}
