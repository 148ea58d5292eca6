package io.callfan.executor;

/**
 * Finds out whether an earlier run of a call took effect, most often by asking a downstream for the idempotency key.
 *
 * @param <I> what the arguments are read into
 */
@FunctionalInterface
public interface VerifyHandler<I> {
    /** It must have no effects itself. An exception, a timeout and null mean that it cannot tell. */
    Verdict verify(I input, Call call) throws Exception;
}
