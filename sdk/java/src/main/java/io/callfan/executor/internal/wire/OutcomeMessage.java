package io.callfan.executor.internal.wire;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.callfan.executor.CallKey;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Pattern;

/** The message that answers a hand-over. */
public record OutcomeMessage(String subject, Map<String, String> headers, byte[] payload) {
    /** What a cause may be. */
    public static final Pattern CAUSE = Pattern.compile("[a-z_]{1,32}");

    private static final long LONGEST_AFTER_MS = 7L * 24 * 3600 * 1000;
    private static final int MAX_REASON = 64 * 1024;

    /** Builds the message. */
    public static OutcomeMessage of(Dispatch d, Outcome o, String executor) throws InvalidOutcome {
        String name = Texts.executorName(executor);
        String by = name.isEmpty() ? "" : ",\"executor\":" + Texts.quote(name);
        String text = "{" + keyMembers(d.key()) + ",\"nonce\":" + Texts.quote(d.nonce()) + by + "," + kindMembers(o) + "}";
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put("Nats-Msg-Id", d.nonce() + "." + o.kind() + (o instanceof Outcome.Released ? "." + d.handover() : ""));
        headers.put("Fn-Protocol", Names.PROTOCOL_VERSION);
        return new OutcomeMessage(d.resultSubject(), headers, text.getBytes(UTF_8));
    }

    private static String kindMembers(Outcome o) throws InvalidOutcome {
        if (o instanceof Outcome.Success success) {
            return "\"success\":true,\"output\":" + success.output();
        }
        if (o instanceof Outcome.Failed failed) {
            String error = "\"success\":false,\"error\":" + Texts.quote(failed.error());
            if (failed.cause() == null) {
                return error;
            }
            if (!CAUSE.matcher(failed.cause()).matches()) {
                throw new InvalidOutcome("the cause " + Texts.quote(failed.cause()) + " does not match " + CAUSE);
            }
            return error + ",\"cause\":\"" + failed.cause() + "\"";
        }
        if (o instanceof Outcome.Again again) {
            long afterMs = Math.min(Math.max(again.afterMs(), 0), LONGEST_AFTER_MS);
            return "\"retry\":{\"reason\":" + Texts.quote(Texts.cut(again.reason(), MAX_REASON)) + ",\"after_ms\":" + afterMs + "}";
        }
        if (o instanceof Outcome.Uncertain uncertain) {
            return "\"uncertain\":{\"reason\":" + Texts.quote(Texts.cut(uncertain.reason(), MAX_REASON)) + "}";
        }
        return "\"released\":true";
    }

    /** The members that name a call. */
    static String keyMembers(CallKey key) {
        return "\"session_id\":" + Texts.quote(key.sessionId()) + ",\"turn_id\":" + Texts.quote(key.turnId()) + ",\"call_id\":"
                + Texts.quote(key.callId());
    }

    /** What the server compares with its limit: the payload and the encoded headers. */
    public long size() {
        long size = payload.length + "NATS/1.0\r\n\r\n".length();
        for (Map.Entry<String, String> header : headers.entrySet()) {
            size += (header.getKey() + ": " + header.getValue() + "\r\n").getBytes(UTF_8).length;
        }
        return size;
    }
}
