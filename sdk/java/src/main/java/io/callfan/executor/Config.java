package io.callfan.executor;

import io.callfan.executor.internal.engine.Worker;
import io.callfan.executor.internal.nats.Connecting;
import io.callfan.executor.internal.nats.NatsLink;

/** Settings that were checked, with all defaults. */
record Config(NatsLink.Settings link, Worker.Settings worker) {
    Connecting connecting() {
        return link.connecting();
    }
}
