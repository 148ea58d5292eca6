package io.callfan.executor.internal.engine;

import io.callfan.executor.CallKey;
import io.callfan.executor.internal.wire.Binding;
import io.callfan.executor.internal.wire.Definition;
import io.callfan.executor.internal.wire.Dispatch;
import io.callfan.executor.internal.wire.InvalidOutcome;
import io.callfan.executor.internal.wire.Outcome;
import io.callfan.executor.internal.wire.Standing;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/** What a running executor needs of the queue. */
public interface Link {
    /** Declares the functions. It waits while no dispatcher answers; null when the moment came first. */
    Binding register(List<Definition> definitions, Moment until) throws InterruptedException;

    /** Asks for up to n calls and hands each over as it arrives. It returns when all came or the pull ended. */
    void pull(Binding binding, int n, Moment until, Consumer<Taken> each) throws LinkException, InterruptedException;

    /** Asks a dispatcher about the call, once. */
    Standing lookup(Dispatch d, Moment until) throws LinkException, InterruptedException;

    /** Publishes the outcome, once, and waits until the stream stored it. */
    void report(Dispatch d, Outcome outcome, Moment until) throws LinkException, InvalidOutcome, InterruptedException;

    /** Calls back when a call of one of the functions is cancelled. */
    void onCancel(List<String> functions, BiConsumer<CallKey, String> cancelled);

    /** Ends the connection after what was sent has left. */
    void close() throws InterruptedException;
}
