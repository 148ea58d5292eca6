package io.callfan.executor.internal.wire;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.callfan.executor.CallKey;
import io.callfan.executor.OnUncertain;
import java.io.IOException;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Map;
import java.util.regex.Pattern;

/** Reads call messages. */
public final class Calls {
    private static final Pattern NONCE = Pattern.compile("[A-Za-z0-9_-]{1,128}");
    private static final Pattern NUMBER = Pattern.compile("\\+?[0-9]{1,18}");

    private Calls() {}

    /** Reads a call message. Header names are compared byte by byte. */
    public static Dispatch decode(Names names, String subject, Map<String, String> headers, byte[] payload) throws NotACall {
        String version = headers.getOrDefault("Fn-Protocol", "");
        if (!version.equals(Names.PROTOCOL_VERSION)) {
            throw new NotACall("protocol " + Texts.quote(version) + "; this executor speaks " + Names.PROTOCOL_VERSION);
        }
        Payload read;
        try {
            read = Payload.read(payload);
        } catch (IOException e) {
            throw new NotACall("the payload cannot be read: it is not one JSON object");
        }
        CallKey key = new CallKey(text(read, "session_id"), text(read, "turn_id"), text(read, "call_id"));
        String name = text(read, "name");
        String token = subject.substring(subject.lastIndexOf('.') + 1);
        if (!Names.token(name).equals(token)) {
            throw new NotACall("the call is for function " + Texts.quote(name) + " but came on " + Texts.quote(subject));
        }
        String resultSubject = headers.getOrDefault("Fn-Result-Subject", "");
        if (!names.isResult(resultSubject, token)) {
            throw new NotACall("header Fn-Result-Subject is not a result subject of this function");
        }
        String nonce = headers.getOrDefault("Fn-Nonce", "");
        if (!NONCE.matcher(nonce).matches()) {
            throw new NotACall("header Fn-Nonce is missing or malformed");
        }
        String choice = headers.getOrDefault("Fn-On-Uncertain", "");
        if (!choice.isEmpty() && OnUncertain.ofWire(choice) == null) {
            throw new NotACall("header Fn-On-Uncertain is " + Texts.quote(choice));
        }
        String idempotencyKey = headers.getOrDefault("Fn-Idempotency-Key", "");
        return new Dispatch(
                key,
                name,
                read.arguments() == null ? "{}".getBytes(UTF_8) : read.arguments(),
                number(headers, "Fn-Attempt"),
                number(headers, "Fn-Handover"),
                nonce,
                resultSubject,
                idempotencyKey.isEmpty() ? idempotencyKey(key) : idempotencyKey,
                optional(headers, "Fn-Timeout-Ms"),
                optional(headers, "Fn-Deadline"),
                present(headers, "traceparent"),
                present(headers, "tracestate"),
                "1".equals(headers.get("Fn-Uncertain")),
                OnUncertain.ofWire(choice));
    }

    private static String text(Payload payload, String name) throws NotACall {
        String text = payload.texts().getOrDefault(name, "");
        if (text.isEmpty()) {
            throw new NotACall(name + " is missing or not a text");
        }
        return text;
    }

    private static String present(Map<String, String> headers, String name) {
        String value = headers.getOrDefault(name, "");
        return value.isEmpty() ? null : value;
    }

    private static Long optional(Map<String, String> headers, String name) throws NotACall {
        return present(headers, name) == null ? null : number(headers, name);
    }

    private static long number(Map<String, String> headers, String name) throws NotACall {
        String text = headers.getOrDefault(name, "");
        long value = NUMBER.matcher(text).matches() ? Long.parseLong(text) : 0;
        if (value < 1) {
            throw new NotACall("header " + name + " is " + Texts.quote(text));
        }
        return value;
    }

    /** The key of a call that a handler hands to its downstreams, as dispatchers compute it. */
    public static String idempotencyKey(CallKey key) {
        MessageDigest hash = Names.sha256();
        for (String id : new String[] {key.sessionId(), key.turnId(), key.callId()}) {
            byte[] bytes = id.getBytes(UTF_8);
            hash.update((bytes.length + ":").getBytes(UTF_8));
            hash.update(bytes);
        }
        return "call_" + Names.base64(Arrays.copyOf(hash.digest(), 17)).substring(0, 22);
    }
}
