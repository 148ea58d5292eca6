package io.callfan.executor;

/**
 * Runs one call on a thread of the executor.
 *
 * @param <I> what the arguments are read into
 */
@FunctionalInterface
public interface Handler<I> {
    /**
     * Answers the call. A String goes to the model as it is, {@link Content} as content parts, null as no value, and anything
     * else as its JSON, serialised once by Jackson. A {@link java.util.concurrent.CompletionStage} is waited for.
     *
     * @throws Failure a business failure: its text goes to the model
     * @throws Retry a technical failure: the call may be run again
     * @throws Uncertain the run was lost and may have taken effect
     * @throws Exception anything else is a crash: the model is told "function crashed", the log gets the rest
     */
    Object handle(I input, Call call) throws Exception;
}
