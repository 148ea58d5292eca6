package io.callfan.executor.internal.wire;

import static io.callfan.executor.Fixtures.bytes;
import static io.callfan.executor.Fixtures.each;
import static io.callfan.executor.Fixtures.headers;
import static io.callfan.executor.Fixtures.json;
import static io.callfan.executor.Fixtures.text;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.callfan.executor.CallKey;
import io.callfan.executor.Content;
import io.callfan.executor.Fixtures;
import io.callfan.executor.internal.json.Inputs;
import io.callfan.executor.internal.json.Outputs;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The wire against protocol/fixtures. */
class FixturesTest {
    private static final Names NAMES = new Names("fn");

    @TestFactory
    Stream<DynamicTest> tokens() throws IOException {
        return each("tokens.json", c -> assertEquals(c.path("token").asText(), Names.token(c.path("name").asText())));
    }

    @TestFactory
    Stream<DynamicTest> calls() throws IOException {
        return Stream.concat(each("calls.json", FixturesTest::call), each("calls-foreign.json", FixturesTest::call));
    }

    private static Dispatch decode(JsonNode c) throws NotACall {
        return Calls.decode(NAMES, c.path("subject").asText(), headers(c.path("headers")), bytes(c.path("payload").asText()));
    }

    private static void call(JsonNode c) throws NotACall {
        Dispatch d = decode(c);
        JsonNode want = c.path("expect");
        ObjectNode got = Fixtures.MAPPER.createObjectNode();
        got.put("session_id", d.key().sessionId());
        got.put("turn_id", d.key().turnId());
        got.put("call_id", d.key().callId());
        got.put("function", d.function());
        got.put("nonce", d.nonce());
        got.put("result_subject", d.resultSubject());
        got.put("idempotency_key", d.idempotencyKey());
        got.put("traceparent", d.traceparent());
        got.put("on_uncertain", d.onUncertain() == null ? null : d.onUncertain().wire());
        got.properties().forEach(member -> assertEquals(want.get(member.getKey()), member.getValue(), member.getKey()));
        assertEquals(want.path("attempt").asLong(), d.attempt());
        assertEquals(want.path("handover").asLong(), d.handover());
        assertEquals(want.path("uncertain").asBoolean(), d.uncertain());
        assertEquals(text(want, "timeout_ms"), d.timeoutMs() == null ? null : d.timeoutMs().toString());
        assertEquals(text(want, "deadline_ms"), d.deadlineMs() == null ? null : d.deadlineMs().toString());
        assertArrayEquals(bytes(want.path("arguments").asText()), d.arguments());
        assertEquals(Calls.idempotencyKey(d.key()), d.idempotencyKey());
    }

    @TestFactory
    Stream<DynamicTest> messagesThatAreNoCall() throws IOException {
        return each("invalid-calls.json", c -> assertThrows(NotACall.class, () -> decode(c)));
    }

    private static Dispatch dispatch(JsonNode c) {
        CallKey key = new CallKey(c.path("session_id").asText(), c.path("turn_id").asText(), c.path("call_id").asText());
        return new Dispatch(
                key, c.path("function").asText(), "{}".getBytes(UTF_8), c.path("attempt").asLong(), c.path("handover").asLong(),
                c.path("nonce").asText(), c.path("result_subject").asText(), "", null, null, null, null, false, null);
    }

    private static Object value(JsonNode input) {
        if (input.has("text")) {
            return input.path("text").asText();
        }
        if (input.has("bytes")) {
            return bytes(input.path("bytes").asText());
        }
        if (input.has("utf16")) {
            StringBuilder units = new StringBuilder();
            input.path("utf16").forEach(unit -> units.append((char) unit.asInt()));
            return units.toString();
        }
        if (input.has("parts")) {
            List<Content.Part> parts = new ArrayList<>();
            input.path("parts").forEach(part -> parts.add(
                    part.has("text") ? Content.text(part.path("text").asText()) : Content.image(part.path("image_url").asText())));
            return new Content(parts);
        }
        return input.has("value") ? input.path("value") : null;
    }

    private static Outcome outcome(JsonNode c) throws Exception {
        JsonNode input = c.path("input");
        return switch (c.path("kind").asText()) {
            case "success" -> new Outcome.Success(new Outputs(Inputs.defaultMapper()).encode(value(input)));
            case "failure" -> new Outcome.Failed(input.path("error").asText(), text(input, "cause"));
            case "retry" -> new Outcome.Again(input.path("reason").asText(), input.path("after_ms").asLong());
            case "uncertain" -> new Outcome.Uncertain(input.path("reason").asText());
            case "released" -> new Outcome.Released();
            default -> null;
        };
    }

    @TestFactory
    Stream<DynamicTest> outcomes() throws IOException {
        return each("outcomes.json", c -> {
            Outcome outcome = outcome(c);
            if (outcome == null) {
                assertEquals("deferred", c.path("kind").asText()); // which this SDK does not have
                return;
            }
            OutcomeMessage message = OutcomeMessage.of(dispatch(c.path("call")), outcome, c.path("input").path("executor").asText(""));
            JsonNode expect = c.path("expect");
            assertEquals(expect.path("subject").asText(), message.subject());
            assertEquals(headers(expect.path("headers")), message.headers());
            ObjectNode got = (ObjectNode) json(message.payload());
            ObjectNode want = (ObjectNode) json(bytes(expect.path("payload").asText()));
            if (expect.has("output_text")) {
                byte[] text = bytes(expect.path("output_text").asText());
                if (expect.path("output_is_json").asBoolean()) {
                    assertEquals(json(text), json(got.path("output").asText().getBytes(UTF_8)));
                } else {
                    assertEquals(new String(text, UTF_8), got.path("output").asText());
                }
                got.remove("output");
                want.remove("output");
            }
            assertEquals(want, got);
        });
    }

    @TestFactory
    Stream<DynamicTest> registrationReplies() throws IOException {
        return each("registration-replies.json", c -> {
            Requests.Reply reply = Requests.registrationReply(bytes(c.path("payload").asText()));
            JsonNode expect = c.path("expect");
            if (expect.has("binding")) {
                JsonNode b = expect.path("binding");
                Binding want = new Binding(
                        b.path("calls_stream").asText(), b.path("consumer").asText(), b.path("ack_wait_ms").asLong(),
                        b.path("max_payload").asLong(), b.path("result_prefix").asText(), b.path("refresh_ms").asLong());
                assertEquals(new Requests.Reply.Accepted(want), reply);
            } else if (expect.has("code")) {
                assertEquals(expect.path("code").asText(), assertInstanceOf(Requests.Reply.Refused.class, reply).code());
            } else {
                assertInstanceOf(Requests.Reply.Unclear.class, reply);
            }
        });
    }

    @TestFactory
    Stream<DynamicTest> lookups() throws IOException {
        return each("lookups.json", c -> {
            JsonNode expect = c.path("expect");
            assertEquals(expect.path("subject").asText(), NAMES.outcome(c.path("call").path("function").asText()));
            assertEquals(json(bytes(expect.path("payload").asText())), json(Requests.lookup(dispatch(c.path("call")))));
        });
    }

    @TestFactory
    Stream<DynamicTest> lookupReplies() throws IOException {
        return each("lookup-replies.json", c -> {
            Standing standing = Requests.standing(bytes(c.path("payload").asText()));
            assertEquals(text(c.path("expect"), "standing"), standing == null ? null : standing.name().toLowerCase(Locale.ROOT));
        });
    }

    @TestFactory
    Stream<DynamicTest> cancels() throws IOException {
        return each("cancels.json", c -> {
            Requests.Cancel cancel = Requests.cancel(bytes(c.path("payload").asText()));
            JsonNode expect = c.path("expect");
            if (expect.isNull()) {
                assertNull(cancel);
            } else {
                CallKey want = new CallKey(expect.path("session_id").asText(), expect.path("turn_id").asText(), expect.path("call_id").asText());
                assertEquals(want, cancel.key());
            }
        });
    }

    @TestFactory
    Stream<DynamicTest> pullStatuses() throws IOException {
        return each("pull-statuses.json", c -> {
            JsonNode headers = c.path("headers");
            Pulls.Action action = Pulls.action(headers.path("Status").asInt(), headers.path("Description").asText(""));
            assertEquals(c.path("action").asText(), action.name().toLowerCase(Locale.ROOT));
            assertEquals(c.path("pending").asInt(), Pulls.pending(text(headers, "Nats-Pending-Messages")));
        });
    }

    @TestFactory
    Stream<DynamicTest> deliveries() throws IOException {
        return each("deliveries.json", c -> assertEquals(c.path("deliveries").asInt(), Names.deliveriesOf(c.path("reply").asText())));
    }

    @TestFactory
    Stream<DynamicTest> terms() throws IOException {
        return each("terms.json", c -> {
            String got = new String(Requests.term(c.path("reason").asText(), headers(c.path("headers"))), UTF_8);
            String want = new String(bytes(c.path("body").asText()), UTF_8);
            assertEquals(json(want.substring("+TERM ".length()).getBytes(UTF_8)), json(got.substring("+TERM ".length()).getBytes(UTF_8)));
        });
    }
}
