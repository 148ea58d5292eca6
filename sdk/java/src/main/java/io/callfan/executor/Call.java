package io.callfan.executor;

import java.time.Instant;
import java.util.Optional;

/** One attempt of a call as its handler sees it. */
public interface Call {
    /** The session, the turn and the call: its name for ever. */
    CallKey key();

    /** The function's name as the model gave it. */
    String function();

    /** The very text that the model wrote: every digit of every number, every member in its order. */
    String arguments();

    /** The same as bytes. The array is a copy. */
    byte[] argumentBytes();

    /** Counts from 1. */
    int attempt();

    /** The same for every attempt of the call. Pass it to downstreams that know such keys. */
    String idempotencyKey();

    /** When the handler's time ends. */
    Instant deadline();

    /** Whether an earlier run may have taken place, wholly or in part. */
    boolean uncertain();

    /**
     * Whether the result is not awaited any more: the time is over, the call was cancelled, or the executor's stop timeout is
     * over. The handler's thread is interrupted at that moment as well.
     */
    boolean isCancelled();

    /** Calls back once when {@link #isCancelled()} becomes true, on a thread of its own, or at once if it is. */
    void onCancel(Runnable callback);

    /** The W3C trace context, empty without tracing. */
    Optional<String> traceparent();

    /** The rest of the trace context, empty without one. */
    Optional<String> tracestate();
}
