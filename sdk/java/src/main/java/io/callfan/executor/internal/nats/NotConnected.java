package io.callfan.executor.internal.nats;

import io.callfan.executor.internal.engine.LinkException;

/** The connection is away; what was asked for may be tried again. */
final class NotConnected extends LinkException {
    private static final long serialVersionUID = 1;

    NotConnected() {
        super("not connected to NATS");
    }
}
