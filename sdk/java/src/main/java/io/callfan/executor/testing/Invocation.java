package io.callfan.executor.testing;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.callfan.executor.CallKey;
import io.callfan.executor.ConfigurationException;
import io.callfan.executor.Executor;
import io.callfan.executor.OnUncertain;
import io.callfan.executor.internal.engine.Moment;
import io.callfan.executor.internal.engine.Registered;
import io.callfan.executor.internal.engine.Trial;
import io.callfan.executor.internal.wire.Calls;
import io.callfan.executor.internal.wire.Dispatch;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * Runs one attempt of a call in this process, with the function's reading of arguments, timeout and encoding, as production does.
 *
 * <pre>{@code
 * TestOutcome outcome = Invocation.of(executor, "get_customer").arguments(Map.of("customer_id", "123")).run();
 * }</pre>
 */
public final class Invocation {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final Registered function;
    private final String name;
    private final Moment cancelled = new Moment();
    private CallKey key = new CallKey("sess_test", "turn_test", "call_test");
    private byte[] arguments = "{}".getBytes(UTF_8);
    private long attempt = 1;
    private Long timeoutMs;
    private Long deadlineMs;
    private boolean uncertain;
    private OnUncertain onUncertain;
    private String traceparent;
    private Duration cancelAfter;

    private Invocation(Registered function, String name) {
        this.function = function;
        this.name = name;
    }

    /** A call of one of the executor's functions. */
    public static Invocation of(Executor executor, String function) {
        Registered registered = executor.registered().get(function);
        if (registered == null) {
            throw new ConfigurationException("the executor has no function \"" + function + "\"");
        }
        return new Invocation(registered, function);
    }

    /** The arguments. Default: an empty object. */
    public Invocation arguments(Map<String, ?> members) {
        try {
            arguments = MAPPER.writeValueAsBytes(members);
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException("these arguments cannot be written as JSON: " + e.getOriginalMessage(), e);
        }
        return this;
    }

    /** The very JSON text that a model would write. */
    public Invocation arguments(String json) {
        arguments = json.getBytes(UTF_8);
        return this;
    }

    /** The name of the call. */
    public Invocation key(CallKey ids) {
        key = ids;
        return this;
    }

    /** The number of the attempt. Default 1. */
    public Invocation attempt(int number) {
        attempt = number;
        return this;
    }

    /** In place of the function's own. */
    public Invocation timeout(Duration time) {
        timeoutMs = Math.max(time.toMillis(), 1);
        return this;
    }

    /** The call's deadline. Default: none. */
    public Invocation deadline(Instant moment) {
        deadlineMs = moment.toEpochMilli();
        return this;
    }

    /** The call may have run: it goes by the function's policy, and may be verified or not run at all. */
    public Invocation uncertain() {
        uncertain = true;
        return this;
    }

    /** What the dispatcher says about a call that may have run. Default: the function's policy. */
    public Invocation onUncertain(OnUncertain choice) {
        onUncertain = choice;
        return this;
    }

    /** The W3C trace context. */
    public Invocation traceparent(String header) {
        traceparent = header;
        return this;
    }

    /** Cancels the call after a while. */
    public Invocation cancelAfter(Duration time) {
        cancelAfter = time;
        return this;
    }

    /** Runs it, and gives what would be reported. */
    public TestOutcome run() {
        Dispatch d = new Dispatch(
                key, name, arguments, attempt, 1, "1-test", "", Calls.idempotencyKey(key), timeoutMs, deadlineMs, traceparent, null, uncertain,
                onUncertain);
        if (cancelAfter != null) {
            CompletableFuture.delayedExecutor(cancelAfter.toMillis(), TimeUnit.MILLISECONDS).execute(cancelled::fire);
        }
        try {
            return TestOutcome.of(Trial.run(function, d, cancelled));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted", e);
        }
    }
}
