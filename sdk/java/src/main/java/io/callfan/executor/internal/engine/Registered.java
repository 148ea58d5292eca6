package io.callfan.executor.internal.engine;

import io.callfan.executor.Call;
import io.callfan.executor.Effects;
import io.callfan.executor.OnUncertain;
import io.callfan.executor.Verdict;
import io.callfan.executor.internal.wire.Definition;
import io.callfan.executor.internal.wire.Dispatch;

/**
 * A function with its handlers.
 *
 * @param run runs the handler and gives its output as the wire carries it
 * @param verify null without a verify handler
 */
public record Registered(
        Definition definition, long timeoutMs, Effects effects, OnUncertain onUncertain, Code<String> run, Code<Verdict> verify, OutputCode output) {

    /** The user's code. */
    @FunctionalInterface
    public interface Code<T> {
        T run(Call call) throws Exception;
    }

    /** Writes an output as the wire carries it. */
    @FunctionalInterface
    public interface OutputCode {
        String encode(Object value) throws InvalidOutput;
    }

    /** What to do with a call that may have run: as the dispatcher says, or else as the function declares. */
    OnUncertain choice(Dispatch d) {
        return d.onUncertain() != null ? d.onUncertain() : onUncertain;
    }

    /** Whether an executor may find out what became of the call, so that a stop leaves it to its lease for the next one to ask. */
    boolean verifiable(Dispatch d) {
        OnUncertain choice = choice(d);
        return choice == OnUncertain.VERIFY || choice == OnUncertain.PARK && verifies();
    }

    boolean verifies() {
        return verify != null;
    }
}
