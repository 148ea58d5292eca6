package io.callfan.executor.internal.engine;

import io.callfan.executor.internal.wire.Dispatch;

/** A delivered message. */
public interface Taken {
    /** The hand-over; null when the message is no call. */
    Dispatch call();

    /** Why the message is no call; null when it is one. */
    String fault();

    int deliveries();

    /** The longest that it may have been on its way. */
    long transitMs();

    /** Starts the lease again. It throws while there is no connection. */
    void inProgress();

    /** Removes the call from the stream. */
    void ack();

    /** Removes a message that is no call. */
    void term(String reason);
}
