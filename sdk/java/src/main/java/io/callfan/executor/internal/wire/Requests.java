package io.callfan.executor.internal.wire;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.callfan.executor.CallKey;
import java.io.IOException;
import java.util.List;
import java.util.Map;

/** What an executor asks dispatchers, what they answer, and what they say unasked. */
public final class Requests {
    private static final ObjectMapper MAPPER = JsonMapper.builder().build();

    private Requests() {}

    /** Who registers, for operators. version may be null. */
    public record ExecutorInfo(String id, String language, String version, String host) {}

    public static byte[] registration(String pool, Definition definition, List<String> functions, ExecutorInfo executor) {
        ObjectNode request = MAPPER.createObjectNode().put("protocol", 1).put("pool", pool);
        request.set("function", definition.json());
        functions.forEach(request.putArray("functions")::add);
        ObjectNode info = request.putObject("executor").put("id", executor.id()).put("language", executor.language());
        if (executor.version() != null) {
            info.put("version", executor.version());
        }
        info.put("host", executor.host());
        try {
            return MAPPER.writeValueAsBytes(request);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("a registration cannot be written", e);
        }
    }

    /** The answer to a registration. */
    public sealed interface Reply {
        record Accepted(Binding binding) implements Reply {}

        record Refused(String code, String message) implements Reply {}

        /** Nothing to go by: ask again. */
        record Unclear(String why) implements Reply {}
    }

    public static Reply registrationReply(byte[] payload) {
        JsonNode reply = read(payload);
        if (!reply.isObject()) {
            return new Reply.Unclear("the answer is not readable");
        }
        JsonNode error = reply.path("error");
        if (error.isObject()) {
            String code = text(error, "code");
            String message = text(error, "message");
            return code.equals("unavailable") ? new Reply.Unclear(message) : new Reply.Refused(code, message);
        }
        JsonNode b = reply.path("binding");
        Binding binding = new Binding(
                text(b, "calls_stream"), text(b, "consumer"), number(b, "ack_wait_ms"), number(b, "max_payload"), text(b, "result_prefix"),
                number(b, "refresh_ms"));
        if (!(reply.path("ok").isBoolean() && reply.path("ok").booleanValue()) || binding.callsStream().isEmpty()
                || binding.consumer().isEmpty()) {
            return new Reply.Unclear("the answer has no binding");
        }
        return new Reply.Accepted(binding);
    }

    public static byte[] lookup(Dispatch d) {
        return ("{" + OutcomeMessage.keyMembers(d.key()) + ",\"nonce\":" + Texts.quote(d.nonce()) + ",\"handover\":" + d.handover() + "}")
                .getBytes(UTF_8);
    }

    /** The standing in the answer to a look-up; null when it has none. */
    public static Standing standing(byte[] payload) {
        return switch (text(read(payload), "standing")) {
            case "pending" -> Standing.PENDING;
            case "answered" -> Standing.ANSWERED;
            case "cancelled" -> Standing.CANCELLED;
            case "unknown" -> Standing.UNKNOWN;
            default -> null;
        };
    }

    /** A cancel notice. */
    public record Cancel(CallKey key, String reason) {}

    /** Whose call a cancel notice is about; null when it is to be ignored. */
    public static Cancel cancel(byte[] payload) {
        JsonNode notice = read(payload);
        CallKey key = new CallKey(text(notice, "session_id"), text(notice, "turn_id"), text(notice, "call_id"));
        if (key.sessionId().isEmpty() || key.turnId().isEmpty() || key.callId().isEmpty()) {
            return null;
        }
        return new Cancel(key, text(notice, "reason"));
    }

    /** What a stream says to a publication. */
    public record PubAck(String stream, int errorCode, String error) {}

    public static PubAck pubAck(byte[] payload) {
        JsonNode ack = read(payload);
        JsonNode error = ack.path("error");
        String text = error.isObject() ? error.path("code").asInt() + " " + text(error, "description") : null;
        return new PubAck(text(ack, "stream"), error.path("err_code").asInt(), text);
    }

    /** The code of the error in an answer of the JetStream API, 0 without one. */
    public static int apiError(byte[] payload) {
        JsonNode error = read(payload).path("error");
        return error.isObject() ? error.path("code").asInt(500) : 0;
    }

    private static final Map<String, String> TERM_HEADERS = Map.of(
            "key", "Fn-Key",
            "attempt", "Fn-Attempt",
            "nonce", "Fn-Nonce",
            "result_subject", "Fn-Result-Subject",
            "on_uncertain", "Fn-On-Uncertain");

    /** What is published on the reply subject of a message that is no call. */
    public static byte[] term(String reason, Map<String, String> headers) {
        ObjectNode body = MAPPER.createObjectNode().put("reason", Texts.cut(Texts.wellFormed(reason).replaceAll("[\r\n]+", " "), 256));
        TERM_HEADERS.forEach((name, header) -> {
            String value = headers.getOrDefault(header, "");
            if (!value.isEmpty()) {
                body.put(name, value);
            }
        });
        return ("+TERM " + body).getBytes(UTF_8);
    }

    private static JsonNode read(byte[] payload) {
        try {
            JsonNode node = MAPPER.readTree(payload);
            return node == null ? MAPPER.missingNode() : node;
        } catch (IOException e) {
            return MAPPER.missingNode();
        }
    }

    private static String text(JsonNode node, String name) {
        JsonNode value = node.path(name);
        return value.isTextual() ? value.textValue() : "";
    }

    private static long number(JsonNode node, String name) {
        JsonNode value = node.path(name);
        return value.isNumber() ? value.asLong() : 0;
    }
}
