package io.callfan.executor;

import io.callfan.executor.internal.engine.Registered;
import io.callfan.executor.internal.json.Inputs;
import io.callfan.executor.internal.json.Outputs;
import io.callfan.executor.internal.trace.Tracing;
import io.callfan.executor.internal.wire.Definition;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;

/** Puts a function together as the engine runs it. */
final class Assembly {
    private Assembly() {}

    @SuppressWarnings("unchecked")
    static Registered of(Function<?> function, Inputs.Reader<?> reader, Outputs outputs) {
        return made((Function<Object>) function, (Inputs.Reader<Object>) reader, outputs);
    }

    private static <I> Registered made(Function<I> f, Inputs.Reader<I> reader, Outputs outputs) {
        f.check();
        VerifyHandler<I> verify = f.verifyHandler();
        return new Registered(
                new Definition(f.name(), f.definition()),
                f.timeoutMs(),
                f.declaredEffects(),
                f.choice(),
                call -> Tracing.within(call, () -> run(f.handler(), reader, outputs, call)),
                verify == null ? null : call -> verify(verify, reader, call),
                outputs::encode);
    }

    private static <I> String run(Handler<I> handler, Inputs.Reader<I> reader, Outputs outputs, Call call) throws Exception {
        Object value = handler.handle(reader.read(call.argumentBytes()), call);
        return outputs.encode(value instanceof CompletionStage<?> stage ? await(stage) : value);
    }

    private static Object await(CompletionStage<?> stage) throws Exception {
        try {
            return stage.toCompletableFuture().get();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof Exception cause) {
                throw cause;
            }
            throw e;
        }
    }

    /** Arguments that do not fit mean that it cannot tell. */
    private static <I> Verdict verify(VerifyHandler<I> verify, Inputs.Reader<I> reader, Call call) throws Exception {
        I input;
        try {
            input = reader.read(call.argumentBytes());
        } catch (Failure e) {
            return Verdict.cannotTell(e.getMessage());
        }
        return verify.verify(input, call);
    }
}
