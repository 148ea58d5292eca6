package io.callfan.executor.conformance;

import com.fasterxml.jackson.annotation.JsonProperty;
import io.callfan.executor.Call;
import io.callfan.executor.Content;
import io.callfan.executor.Effects;
import io.callfan.executor.Executor;
import io.callfan.executor.ExecutorBuilder;
import io.callfan.executor.Failure;
import io.callfan.executor.Function;
import io.callfan.executor.Handler;
import io.callfan.executor.OnUncertain;
import io.callfan.executor.Retry;
import io.callfan.executor.Verdict;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** The conformance executor of the Java SDK; see protocol/conformance.md. */
public final class ConformanceExecutor {
    record None() {}

    record Text(String text) {}

    record Again(@JsonProperty("after_ms") long afterMs, @JsonProperty("ok_at") int okAt) {}

    record Millis(long ms) {}

    record Pay(Optional<Long> ms) {}

    record VerifiedPay(String verdict, Optional<Long> ms) {}

    record Count(int count) {}

    record Bytes(int bytes) {}

    record Unless(String unless) {}

    private final Journal journal = new Journal(env("CONFORMANCE_LOG"));
    private final Executor executor;

    private ConformanceExecutor() throws IOException {
        ExecutorBuilder builder = Executor.builder()
                .pool(env("CONFORMANCE_POOL"))
                .concurrency(Integer.parseInt(env("EXECUTOR_CONCURRENCY")))
                .stopTimeout(Duration.ofMillis(Long.parseLong(env("EXECUTOR_STOP_TIMEOUT_MS"))));
        String inboxes = System.getenv("CONFORMANCE_INBOX_PREFIX");
        if (inboxes != null && !inboxes.isEmpty()) {
            builder.inboxPrefix(inboxes);
        }
        executor = builder.build();
    }

    private static String env(String name) {
        String value = System.getenv(name);
        if (value == null) {
            throw new IllegalStateException(name + " is not set; callfan conformance sets it");
        }
        return value;
    }

    /** Adds a function that writes the event log. */
    private <I> Function<I> add(String name, Class<I> input, String description, Handler<I> handler) {
        return executor.function(name, input, (value, call) -> logged(handler, value, call)).description(description);
    }

    private <I> Object logged(Handler<I> handler, I value, Call call) throws Exception {
        journal.log("start", call);
        try {
            return handler.handle(value, call);
        } finally {
            journal.log(call.isCancelled() ? "cancelled" : "end", call);
        }
    }

    private Object pay(Optional<Long> ms, Call call) throws InterruptedException {
        journal.log("effect", call);
        Thread.sleep(ms.orElse(0L));
        return "paid";
    }

    private void declare() {
        for (String name : List.of("echo", "sag mir, wo ☂.*>", "a/" + "n".repeat(300))) {
            executor.rawFunction(name, (arguments, call) -> logged((text, same) -> text, arguments, call))
                    .description("Returns its arguments.")
                    .parameters("{\"type\":\"object\"}")
                    .effects(Effects.NONE);
        }
        add("fail", Text.class, "Fails with a text.", (input, call) -> {
            throw new Failure(input.text());
        }).effects(Effects.NONE);
        add("retry", Again.class, "Fails until an attempt.", (input, call) -> {
            if (call.attempt() < input.okAt()) {
                throw new Retry("not yet", Duration.ofMillis(input.afterMs()));
            }
            return "ok";
        }).effects(Effects.IDEMPOTENT).attempts(5);
        add("sleep", Millis.class, "Waits.", (input, call) -> {
            Thread.sleep(input.ms());
            return "slept";
        }).effects(Effects.IDEMPOTENT);
        add("key", None.class, "Says what it knows about its call.", (input, call) -> key(call)).effects(Effects.IDEMPOTENT);
        add("pay_blind", Pay.class, "Pays.", (input, call) -> pay(input.ms(), call)).effects(Effects.SIDE_EFFECTS);
        add("pay_park", Pay.class, "Pays.", (input, call) -> pay(input.ms(), call)).effects(Effects.SIDE_EFFECTS).onUncertain(OnUncertain.PARK);
        add("pay", VerifiedPay.class, "Pays.", (input, call) -> pay(input.ms(), call))
                .effects(Effects.SIDE_EFFECTS)
                .verify(this::verify);
        add("text", Text.class, "Returns the text.", (input, call) -> input.text()).effects(Effects.NONE);
        add("parts", None.class, "Returns content parts.", (input, call) -> Content.of(Content.text("first"), Content.text("second ☂")))
                .effects(Effects.NONE);
        add("object", None.class, "Returns an object.", (input, call) -> object()).effects(Effects.NONE);
        add("nothing", None.class, "Returns nothing.", (input, call) -> null).effects(Effects.NONE);
        add("crash", None.class, "Crashes.", (input, call) -> {
            throw new IllegalStateException("secret-detail");
        }).effects(Effects.NONE);
        add("typed", Count.class, "Returns the number.", (input, call) -> String.valueOf(input.count())).effects(Effects.NONE);
        add("large", Bytes.class, "Returns a long text.", (input, call) -> "x".repeat(input.bytes())).effects(Effects.NONE);
        add("block", Millis.class, "Keeps a thread busy.", (input, call) -> {
            long end = System.nanoTime() + input.ms() * 1_000_000;
            while (System.nanoTime() < end) {
                Thread.onSpinWait();
            }
            return "blocked";
        }).effects(Effects.IDEMPOTENT);
        add("stuck", None.class, "Never returns.", (input, call) -> stuck()).effects(Effects.NONE).timeout(Duration.ofSeconds(1)).attempts(1);
        add("exit", Unless.class, "Ends the process.", (input, call) -> {
            if (!Files.exists(Path.of(input.unless()))) {
                Runtime.getRuntime().halt(3);
            }
            return "alive";
        }).effects(Effects.IDEMPOTENT);
    }

    private Verdict verify(VerifiedPay input, Call call) {
        journal.log("verify", call);
        return switch (input.verdict()) {
            case "done" -> Verdict.done("verified");
            case "not_done" -> Verdict.notDone();
            case "cannot_tell" -> Verdict.cannotTell("no receipt");
            default -> throw new IllegalStateException("secret-detail");
        };
    }

    private static Object key(Call call) {
        Map<String, Object> known = new LinkedHashMap<>();
        known.put("idempotency_key", call.idempotencyKey());
        known.put("attempt", call.attempt());
        known.put("session_id", call.key().sessionId());
        known.put("turn_id", call.key().turnId());
        known.put("call_id", call.key().callId());
        known.put("function", call.function());
        known.put("deadline_ms", call.deadline().toEpochMilli());
        call.traceparent().ifPresent(header -> known.put("traceparent", header));
        return known;
    }

    private static Object object() {
        List<Object> list = new ArrayList<>(List.of(1, 2.5, true));
        list.add(null);
        list.add("<a>&");
        Map<String, Object> nested = new LinkedHashMap<>();
        nested.put("list", list);
        nested.put("empty", Map.of());
        Map<String, Object> value = new LinkedHashMap<>();
        value.put("name", "Žluťoučký kůň ☂");
        value.put("nested", nested);
        value.put("integer", 9007199254740991L);
        value.put("text", "{\"quoted\":\"\\n\"}");
        return value;
    }

    private static Object stuck() {
        long end = System.nanoTime() + Duration.ofMinutes(10).toNanos();
        while (System.nanoTime() < end) {
            try {
                Thread.sleep(1000);
            } catch (InterruptedException e) {
                // that is what it is for
            }
        }
        return null;
    }

    public static void main(String[] args) throws IOException {
        ConformanceExecutor conformance = new ConformanceExecutor();
        conformance.declare();
        conformance.executor.run();
    }
}
