package io.callfan.executor.internal.wire;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Base64;
import java.util.regex.Pattern;

/** The subjects of an installation. */
public record Names(String prefix) {
    /** The version of the wire protocol that this package speaks. */
    public static final String PROTOCOL_VERSION = "1";

    private static final Pattern OWN_TOKEN = Pattern.compile("[A-Za-z0-9_-]{1,64}");
    private static final Pattern PARTITION = Pattern.compile("0[0-9]|[1-9][0-9]{1,4}");
    private static final Pattern COUNT = Pattern.compile("[1-9][0-9]{0,8}");

    /** The part of a subject that stands for a function's name; empty for the empty name. */
    public static String token(String name) {
        if (name.isEmpty() || OWN_TOKEN.matcher(name).matches()) {
            return name;
        }
        byte[] bytes = Texts.wellFormed(name).getBytes(UTF_8);
        if (bytes.length <= 128) {
            return "=" + base64(bytes);
        }
        return "~" + base64(sha256().digest(bytes));
    }

    public String register(String name) {
        return prefix + ".register." + token(name);
    }

    public String outcome(String name) {
        return prefix + ".outcome." + token(name);
    }

    public String cancel(String name) {
        return prefix + ".cancel." + token(name);
    }

    /** Whether subject is where the outcomes of the function with that token go. */
    boolean isResult(String subject, String functionToken) {
        String start = prefix + ".result." + functionToken + ".p";
        return subject.startsWith(start) && PARTITION.matcher(subject.substring(start.length())).matches();
    }

    /** How often the message with that reply subject was handed out, from 1. */
    public static int deliveriesOf(String reply) {
        String[] parts = reply.split("\\.", -1);
        int at = parts.length >= 11 ? 6 : 4;
        if (at >= parts.length || !COUNT.matcher(parts[at]).matches()) {
            return 1;
        }
        return Integer.parseInt(parts[at]);
    }

    static String base64(byte[] bytes) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
    }

    static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("this Java has no SHA-256", e);
        }
    }
}
