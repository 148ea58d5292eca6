package io.callfan.executor.internal.engine;

import static io.callfan.executor.internal.engine.Log.LOG;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.callfan.executor.Call;
import io.callfan.executor.CallKey;
import io.callfan.executor.internal.wire.Dispatch;
import java.time.Instant;
import java.util.Optional;

/** What a handler sees of its call. */
final class RunningCall implements Call {
    private final Dispatch d;
    private final Instant deadline;
    private final boolean uncertain;
    private final Threads threads;
    private final Moment aborted;

    RunningCall(Dispatch d, long deadlineMs, boolean uncertain, Threads threads, Moment aborted) {
        this.d = d;
        this.deadline = Instant.ofEpochMilli(deadlineMs);
        this.uncertain = uncertain;
        this.threads = threads;
        this.aborted = aborted;
    }

    @Override
    public CallKey key() {
        return d.key();
    }

    @Override
    public String function() {
        return d.function();
    }

    @Override
    public String arguments() {
        return new String(d.arguments(), UTF_8);
    }

    @Override
    public byte[] argumentBytes() {
        return d.arguments().clone();
    }

    @Override
    public int attempt() {
        return (int) Math.min(d.attempt(), Integer.MAX_VALUE);
    }

    @Override
    public String idempotencyKey() {
        return d.idempotencyKey();
    }

    @Override
    public Instant deadline() {
        return deadline;
    }

    @Override
    public boolean uncertain() {
        return uncertain;
    }

    @Override
    public boolean isCancelled() {
        return aborted.happened();
    }

    @Override
    public void onCancel(Runnable callback) {
        aborted.on(() -> threads.handler(() -> {
            try {
                callback.run();
            } catch (RuntimeException | Error e) {
                Log.about(LOG.atError(), d).setCause(e).log("callback of a cancelled call failed");
            }
        }));
    }

    @Override
    public Optional<String> traceparent() {
        return Optional.ofNullable(d.traceparent());
    }

    @Override
    public Optional<String> tracestate() {
        return Optional.ofNullable(d.tracestate());
    }
}
