package io.callfan.executor;

import static io.callfan.executor.Fixtures.json;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonPropertyDescription;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import io.callfan.executor.internal.wire.Definition;
import io.callfan.executor.internal.wire.Names;
import io.callfan.executor.internal.wire.Requests;
import io.callfan.executor.testing.Invocation;
import io.callfan.executor.testing.TestOutcome;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Functions as programs declare them, run without servers. */
class FunctionTest {
    enum Plan {
        FREE,
        PRO
    }

    record Address(String city) {}

    record Order(
            @JsonProperty("order_id") @JsonPropertyDescription("the number on the invoice") long orderId,
            Plan plan,
            List<String> tags,
            Address address,
            Optional<Double> discount) {}

    record Positive(int n) {
        Positive {
            if (n < 1) {
                throw new IllegalArgumentException("must be 1 or more");
            }
        }
    }

    record Nothing() {}

    private final Executor executor = Executor.builder().pool("test").build();

    private TestOutcome invoke(String arguments) {
        return Invocation.of(executor, "f").arguments(arguments).run();
    }

    private void returning(Object value) {
        executor.function("f", Nothing.class, (input, call) -> value);
    }

    @Test
    void theSchemaOfARecord() throws IOException {
        Function<Order> f = executor.function("f", Order.class, (input, call) -> null).description("Orders.");
        assertEquals(json("""
                {"type":"object","properties":{
                  "order_id":{"type":"integer","description":"the number on the invoice"},
                  "plan":{"type":"string","enum":["FREE","PRO"]},
                  "tags":{"type":"array","items":{"type":"string"}},
                  "address":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},
                  "discount":{"type":["number","null"]}},
                 "required":["order_id","plan","tags","address"]}""".getBytes(UTF_8)), json(f.definitionJson().getBytes(UTF_8)).path("parameters"));
        List<String> names = new ArrayList<>();
        json(f.definitionJson().getBytes(UTF_8)).path("parameters").path("properties").fieldNames().forEachRemaining(names::add);
        assertEquals(List.of("order_id", "plan", "tags", "address", "discount"), names);
    }

    @Test
    void aTypeThatIsNoObjectIsRefused() {
        assertThrows(ConfigurationException.class, () -> executor.function("f", String.class, (input, call) -> input));
    }

    @Test
    void argumentsAreRead() {
        executor.function("f", Order.class, (input, call) -> input.orderId() + input.plan().name() + input.tags() + input.address().city() + input.discount());
        assertEquals("7PRO[a]Bonn" + Optional.empty(), invoke("{\"order_id\":7,\"plan\":\"PRO\",\"tags\":[\"a\"],\"address\":{\"city\":\"Bonn\"},\"unknown\":1}").text());
    }

    @Test
    void argumentsThatDoNotFitNameTheMember() {
        executor.function("f", Order.class, (input, call) -> "entered");
        String rest = ",\"plan\":\"PRO\",\"tags\":[],\"address\":{\"city\":\"Bonn\"}}";
        Map<String, String> wanted = Map.of(
                "{\"order_id\":\"7\"" + rest, "order_id: want an integer in the range of long",
                "{\"order_id\":1.5" + rest, "order_id: want an integer in the range of long",
                "{\"order_id\":123456789012345678901234567890" + rest, "order_id: want an integer in the range of long",
                "{\"order_id\":null" + rest, "order_id: must not be null",
                "{\"order_id\":7,\"plan\":\"BIG\",\"tags\":[],\"address\":{\"city\":\"Bonn\"}}", "plan: want one of FREE, PRO",
                "{\"order_id\":7,\"plan\":\"PRO\",\"tags\":[],\"address\":{\"city\":5}}", "address.city: want a string",
                "{\"order_id\":7,\"plan\":\"PRO\",\"tags\":[]}", "address: is missing",
                "[1]", "want a JSON object",
                "{\"order_id\":", "not valid JSON");
        wanted.forEach((arguments, text) -> {
            TestOutcome outcome = invoke(arguments);
            assertEquals("invalid_arguments", outcome.cause(), arguments);
            assertEquals("invalid arguments: " + text, outcome.error(), arguments);
        });
    }

    @Test
    void aRecordMayCheckItself() {
        executor.function("f", Positive.class, (input, call) -> "entered");
        assertEquals("invalid arguments: must be 1 or more", invoke("{\"n\":0}").error());
    }

    @Test
    void numbersOfAnyObjectAreExact() {
        executor.function("f", new TypeReference<Map<String, Object>>() {}, (input, call) -> {
            assertEquals(new BigInteger("123456789012345678901234567890"), input.get("i"));
            assertEquals(new BigDecimal("0.1234567890123456789"), input.get("d"));
            return "exact";
        });
        assertEquals("exact", invoke("{\"i\":123456789012345678901234567890,\"d\":0.1234567890123456789}").text());
    }

    @Test
    void aRawFunctionGetsTheVeryText() {
        executor.rawFunction("f", (arguments, call) -> arguments + new String(call.argumentBytes(), UTF_8));
        assertEquals("{ \"a\":1.50,\"a\":2}{ \"a\":1.50,\"a\":2}", invoke("{ \"a\":1.50,\"a\":2}").text());
    }

    @Test
    void outputs() throws IOException {
        returning(Map.of("at", Instant.EPOCH, "of", Optional.of(new BigDecimal("1.50"))));
        assertEquals(json("{\"at\":\"1970-01-01T00:00:00Z\",\"of\":1.50}".getBytes(UTF_8)), invoke("{}").json());
    }

    @Test
    void aCompletionStageIsWaitedFor() {
        returning(CompletableFuture.supplyAsync(() -> "later"));
        assertEquals("later", invoke("{}").text());
    }

    @Test
    void aFailedStageIsItsCause() {
        returning(CompletableFuture.failedFuture(new Failure("no such customer", "not_found")));
        TestOutcome outcome = invoke("{}");
        assertEquals(List.of("no such customer", "not_found"), List.of(outcome.error(), outcome.cause()));
    }

    @Test
    void anOutputThatCannotBeWrittenIsAFailure() {
        returning(new Object());
        assertEquals("invalid_output", invoke("{}").cause());
    }

    @Test
    void noValue() {
        returning(null);
        assertTrue(invoke("{}").output().isNull());
    }

    @Test
    void retries() {
        executor.function("f", Nothing.class, (input, call) -> {
            throw new Retry("HTTP 503", Duration.ofMillis(1500));
        });
        TestOutcome outcome = invoke("{}");
        assertEquals(List.of("retry", "HTTP 503", 1500L), List.of(outcome.kind(), outcome.reason(), outcome.afterMs()));
    }

    @TestFactory
    Stream<DynamicTest> aLostRunGoesByTheChoiceForUncertainCalls() throws IOException {
        return Fixtures.each("lost-runs.json", c -> {
            Executor one = Executor.builder().pool("test").build();
            Function<Nothing> f = one.function("f", Nothing.class, (input, call) -> {
                throw new Uncertain("the bank hung up");
            });
            if (c.path("verifies").asBoolean()) {
                f.verify((input, call) -> Verdict.notDone());
            }
            OnUncertain choice = OnUncertain.valueOf(c.path("on_uncertain").asText().toUpperCase(Locale.ROOT));
            TestOutcome outcome = Invocation.of(one, "f").onUncertain(choice).run();
            JsonNode want = c.path("expect");
            assertEquals(want.path("kind").asText(), outcome.kind());
            assertEquals(want.path("cause").asText(), outcome.cause());
            assertEquals(want.path("reason").asText(), outcome.reason());
        });
    }

    @Test
    void timeoutsAndCancellations() {
        executor.function("f", Nothing.class, (input, call) -> {
            Thread.sleep(60_000);
            return "late";
        });
        TestOutcome outcome = Invocation.of(executor, "f").timeout(Duration.ofMillis(30)).run();
        assertEquals(List.of("timeout", "timed out after 30ms"), List.of(outcome.cause(), outcome.error()));
        assertEquals("", Invocation.of(executor, "f").cancelAfter(Duration.ofMillis(30)).run().kind());
    }

    @Test
    void whatTheHandlerKnows() {
        String traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        executor.function("f", Nothing.class, (input, call) -> call.attempt() + call.key().callId() + call.traceparent().orElse("") + call.uncertain());
        assertEquals("3call_test" + traceparent + "false", Invocation.of(executor, "f").attempt(3).traceparent(traceparent).run().text());
    }

    @Test
    void uncertainCallsAreVerified() {
        executor.function("f", Nothing.class, (input, call) -> "ran").verify((input, call) -> Verdict.done("verified"));
        assertEquals("verified", Invocation.of(executor, "f").uncertain().run().text());
        assertEquals("ran", Invocation.of(executor, "f").uncertain().onUncertain(OnUncertain.RERUN).run().text());
        assertEquals("unknown_outcome", Invocation.of(executor, "f").uncertain().onUncertain(OnUncertain.FAIL).run().cause());
    }

    @Test
    void settingsThatCannotBeUsed() {
        returning("x");
        assertThrows(ConfigurationException.class, () -> returning("again"));
        assertThrows(ConfigurationException.class, () -> executor.rawFunction("", (input, call) -> ""));
        Function<String> f = executor.rawFunction("g", (input, call) -> "");
        assertThrows(ConfigurationException.class, () -> f.attempts(1001));
        assertThrows(ConfigurationException.class, () -> f.timeout(Duration.ofSeconds(-1)));
        assertThrows(ConfigurationException.class, () -> f.parameters("[]"));
        assertThrows(ConfigurationException.class, () -> f.parameters("{\"type\":\"string\"}"));
        assertThrows(ConfigurationException.class, () -> new Backoff(null, null, 0.5, null));
        assertThrows(ConfigurationException.class, () -> new Backoff(null, null, null, 2.0));
        f.onUncertain(OnUncertain.VERIFY);
        assertThrows(ConfigurationException.class, executor::registered);
        assertThrows(ConfigurationException.class, () -> Executor.builder().build());
        assertThrows(ConfigurationException.class, () -> Executor.builder().pool("a.b").build());
        assertThrows(ConfigurationException.class, () -> Executor.builder().pool("a").concurrency(0).build());
        assertThrows(ConfigurationException.class, () -> Executor.builder().pool("a").id("a\nb").build());
    }

    @TestFactory
    Stream<DynamicTest> registrations() throws IOException {
        return Fixtures.each("registrations.json", c -> {
            JsonNode input = c.path("input");
            JsonNode wanted = input.path("function");
            Function<String> f = Executor.builder().pool("test").build().rawFunction(wanted.path("name").asText(), (arguments, call) -> "");
            declare(f, wanted);
            JsonNode by = input.path("executor");
            List<String> functions = new ArrayList<>();
            input.path("functions").forEach(name -> functions.add(name.asText()));
            byte[] request = Requests.registration(
                    input.path("pool").asText(), new Definition(f.name(), f.definition()), functions,
                    new Requests.ExecutorInfo(by.path("id").asText(), by.path("language").asText(), Fixtures.text(by, "version"), by.path("host").asText()));
            assertEquals(c.path("expect").path("subject").asText(), new Names("fn").register(f.name()));
            assertEquals(json(Fixtures.bytes(c.path("expect").path("payload").asText())), json(request));
        });
    }

    private static void declare(Function<String> f, JsonNode wanted) {
        JsonNode policy = wanted.path("policy");
        if (wanted.has("description")) {
            f.description(wanted.path("description").asText());
        }
        if (wanted.has("parameters")) {
            f.parameters(wanted.path("parameters").toString());
        }
        if (wanted.path("verifies").asBoolean()) {
            f.verify((input, call) -> Verdict.notDone());
        }
        if (policy.has("timeout")) {
            f.timeout(duration(policy.path("timeout"))).queueTimeout(duration(policy.path("queue_timeout"))).totalDeadline(duration(policy.path("total_deadline")));
        }
        if (policy.has("attempts")) {
            f.attempts(policy.path("attempts").asInt());
        }
        if (policy.has("backoff")) {
            JsonNode backoff = policy.path("backoff");
            f.backoff(new Backoff(
                    duration(backoff.path("initial")), duration(backoff.path("max")), backoff.path("multiplier").asDouble(), backoff.path("jitter").asDouble()));
        }
        for (Effects effects : Effects.values()) {
            if (effects.wire().equals(policy.path("effects").asText())) {
                f.effects(effects);
            }
        }
        if (policy.has("on_uncertain")) {
            f.onUncertain(OnUncertain.ofWire(policy.path("on_uncertain").asText()));
        }
    }

    /** 1m30s is PT1M30S, and 500ms PT0.500S. */
    private static Duration duration(JsonNode text) {
        String go = text.asText();
        return go.endsWith("ms") ? Duration.ofMillis(Long.parseLong(go.replace("ms", ""))) : Duration.parse("PT" + go);
    }
}
