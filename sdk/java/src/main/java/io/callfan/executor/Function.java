package io.callfan.executor;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.callfan.executor.internal.json.Schemas;
import io.callfan.executor.internal.wire.Texts;
import java.time.Duration;
import java.util.Objects;

/**
 * A function that an executor serves, and how it wants to be run. Operators may overrule the policy. All methods return this.
 *
 * @param <I> what the arguments are read into
 */
public final class Function<I> {
    private static final ObjectMapper MAPPER = JsonMapper.builder().build();
    private static final Duration DEFAULT_TIMEOUT = Duration.ofSeconds(30);

    private final String name;
    private final Handler<I> handler;
    private final ObjectNode policy = MAPPER.createObjectNode();
    private VerifyHandler<I> verify;
    private String description;
    private ObjectNode parameters;
    private Duration timeout = DEFAULT_TIMEOUT;
    private Effects effects = Effects.SIDE_EFFECTS;
    private OnUncertain onUncertain;
    private boolean sealed;

    Function(String name, ObjectNode parameters, Handler<I> handler) {
        if (name == null || name.isEmpty()) {
            throw new ConfigurationException("the function's name is empty");
        }
        this.name = name;
        this.parameters = parameters;
        this.handler = Objects.requireNonNull(handler, "handler");
    }

    /** Tells the model what the function does. */
    public Function<I> description(String text) {
        change();
        description = Objects.requireNonNull(text, "text");
        return this;
    }

    /** The JSON Schema of the arguments, an object schema. It replaces the one that is derived from the type. */
    public Function<I> parameters(String jsonSchema) {
        change();
        try {
            JsonNode schema = MAPPER.readTree(jsonSchema);
            Schemas.check(schema);
            parameters = (ObjectNode) schema;
        } catch (JsonProcessingException e) {
            throw wrong("the parameters are not valid JSON", e);
        } catch (ConfigurationException e) {
            throw wrong(e.getMessage(), e);
        }
        return this;
    }

    /** What running it twice does. Without it a function has side effects. */
    public Function<I> effects(Effects what) {
        change();
        effects = Objects.requireNonNull(what, "what");
        policy.put("effects", what.wire());
        return this;
    }

    /** Bounds one run of the handler. Default 30 s. */
    public Function<I> timeout(Duration time) {
        duration(policy, "timeout", time);
        timeout = time.isZero() ? DEFAULT_TIMEOUT : time;
        return this;
    }

    /** Bounds the wait for an executor. Default 60 s. */
    public Function<I> queueTimeout(Duration time) {
        return duration(policy, "queue_timeout", time);
    }

    /** Bounds the time from the claim to the answer, all attempts included. Default 15 min. */
    public Function<I> totalDeadline(Duration time) {
        return duration(policy, "total_deadline", time);
    }

    /** How often a technical failure lets the call run, 1 to 1000. Default 3, with side effects 1. */
    public Function<I> attempts(int most) {
        change();
        if (most < 1 || most > 1000) {
            throw wrong("attempts is " + most + "; use 1 to 1000", null);
        }
        policy.put("attempts", most);
        return this;
    }

    /** The wait between attempts. */
    public Function<I> backoff(Backoff backoff) {
        change();
        ObjectNode wire = policy.putObject("backoff");
        if (backoff.initial() != null) {
            duration(wire, "initial", backoff.initial());
        }
        if (backoff.max() != null) {
            duration(wire, "max", backoff.max());
        }
        if (backoff.multiplier() != null) {
            wire.put("multiplier", backoff.multiplier());
        }
        if (backoff.jitter() != null) {
            wire.put("jitter", backoff.jitter());
        }
        return this;
    }

    /** What happens to a call that may have run. Default: see {@link OnUncertain}. */
    public Function<I> onUncertain(OnUncertain choice) {
        change();
        onUncertain = Objects.requireNonNull(choice, "choice");
        policy.put("on_uncertain", choice.wire());
        return this;
    }

    /** Finds out whether an earlier run took effect, before a call that may have run is run again. */
    public Function<I> verify(VerifyHandler<I> handler) {
        change();
        verify = Objects.requireNonNull(handler, "handler");
        return this;
    }

    private Function<I> duration(ObjectNode into, String member, Duration time) {
        change();
        if (time.isNegative()) {
            throw wrong(member + " is " + time + "; it must not be negative", null);
        }
        if (!time.isZero()) {
            into.put(member, Texts.duration(Math.max(time.toMillis(), 1)));
        }
        return this;
    }

    private void change() {
        if (sealed) {
            throw wrong("the executor runs already; declare functions before run()", null);
        }
    }

    private ConfigurationException wrong(String what, Throwable cause) {
        return new ConfigurationException("function " + Texts.quote(name) + ": " + what, cause);
    }

    void seal() {
        sealed = true;
    }

    void check() {
        if (onUncertain == OnUncertain.VERIFY && verify == null) {
            throw wrong("onUncertain is VERIFY, and there is no verify handler; give one by verify()", null);
        }
    }

    /** The function's name. */
    public String name() {
        return name;
    }

    Handler<I> handler() {
        return handler;
    }

    /** Null without one. */
    VerifyHandler<I> verifyHandler() {
        return verify;
    }

    Effects declaredEffects() {
        return effects;
    }

    long timeoutMs() {
        return Math.max(timeout.toMillis(), 1);
    }

    OnUncertain choice() {
        if (onUncertain != null) {
            return onUncertain;
        }
        if (effects != Effects.SIDE_EFFECTS) {
            return OnUncertain.RERUN;
        }
        return verify != null ? OnUncertain.VERIFY : OnUncertain.FAIL;
    }

    /** The definition as it is registered. */
    ObjectNode definition() {
        ObjectNode json = MAPPER.createObjectNode().put("name", name);
        if (description != null) {
            json.put("description", description);
        }
        if (parameters != null) {
            json.set("parameters", parameters);
        }
        if (verify != null) {
            json.put("verifies", true);
        }
        json.set("policy", policy);
        return json;
    }

    /** The definition as it is registered, JSON. */
    public String definitionJson() {
        return definition().toString();
    }
}
