package io.callfan.executor.internal.nats;

import io.nats.client.Message;

/** Takes a message that is no status. */
@FunctionalInterface
interface Deliver {
    /** transitMs is the longest that it may have been on its way. */
    void take(Message message, long transitMs);
}
