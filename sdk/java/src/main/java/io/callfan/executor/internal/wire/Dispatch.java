package io.callfan.executor.internal.wire;

import io.callfan.executor.CallKey;
import io.callfan.executor.OnUncertain;

/**
 * One hand-over of an attempt, as its message says.
 *
 * @param arguments the very bytes that the model wrote
 * @param nonce proof that an outcome answers this attempt; never logged, never given to handlers
 * @param timeoutMs null when the function's own holds
 * @param deadlineMs milliseconds since 1970; null when there is none
 * @param onUncertain null when it is left to the function
 */
public record Dispatch(
        CallKey key,
        String function,
        byte[] arguments,
        long attempt,
        long handover,
        String nonce,
        String resultSubject,
        String idempotencyKey,
        Long timeoutMs,
        Long deadlineMs,
        String traceparent,
        String tracestate,
        boolean uncertain,
        OnUncertain onUncertain) {

    public Dispatch withDeadline(long ms) {
        return new Dispatch(
                key, function, arguments, attempt, handover, nonce, resultSubject, idempotencyKey, timeoutMs, ms, traceparent, tracestate,
                uncertain, onUncertain);
    }

    /** Names the hand-over within this process. */
    public HandoverId handoverId() {
        return new HandoverId(key, attempt, handover);
    }

    /** The name of a hand-over within this process. */
    public record HandoverId(CallKey key, long attempt, long handover) {}

    @Override
    public String toString() { // without nonce and arguments
        return function + " " + key + " attempt " + attempt;
    }
}
