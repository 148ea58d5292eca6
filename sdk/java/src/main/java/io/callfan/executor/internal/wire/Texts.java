package io.callfan.executor.internal.wire;

import static java.nio.charset.StandardCharsets.UTF_8;

/** Texts as JSON, and pieces of texts. */
public final class Texts {
    private static final char[] HEX = "0123456789abcdef".toCharArray();

    private Texts() {}

    /** The text with surrogates without a partner replaced by U+FFFD. */
    public static String wellFormed(String text) {
        StringBuilder copy = null;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (!Character.isSurrogate(c)) {
                continue;
            }
            if (Character.isHighSurrogate(c) && i + 1 < text.length() && Character.isLowSurrogate(text.charAt(i + 1))) {
                i++;
                continue;
            }
            if (copy == null) {
                copy = new StringBuilder(text);
            }
            copy.setCharAt(i, '\uFFFD');
        }
        return copy == null ? text : copy.toString();
    }

    /** The text as a JSON string. Nothing is escaped that need not be. */
    public static String quote(String text) {
        String whole = wellFormed(text);
        StringBuilder json = new StringBuilder(whole.length() + 16).append('"');
        for (int i = 0; i < whole.length(); i++) {
            char c = whole.charAt(i);
            switch (c) {
                case '"' -> json.append("\\\"");
                case '\\' -> json.append("\\\\");
                case '\n' -> json.append("\\n");
                case '\r' -> json.append("\\r");
                case '\t' -> json.append("\\t");
                default -> {
                    if (c < 0x20) {
                        json.append("\\u00").append(HEX[c >> 4]).append(HEX[c & 0xf]);
                    } else {
                        json.append(c);
                    }
                }
            }
        }
        return json.append('"').toString();
    }

    /** The beginning of a text that has so many bytes at most. */
    public static String cut(String text, int bytes) {
        if ((long) text.length() * 3 <= bytes) {
            return text;
        }
        byte[] encoded = wellFormed(text).getBytes(UTF_8);
        if (encoded.length <= bytes) {
            return text;
        }
        int end = bytes;
        while (end > 0 && (encoded[end] & 0xc0) == 0x80) {
            end--;
        }
        return new String(encoded, 0, end, UTF_8);
    }

    /** The printable part of a name, as far as it fits into 128 bytes. */
    public static String executorName(String name) {
        StringBuilder printable = new StringBuilder();
        wellFormed(name).codePoints().filter(Texts::printable).forEach(printable::appendCodePoint);
        return cut(printable.toString(), 128);
    }

    private static boolean printable(int c) {
        return switch (Character.getType(c)) {
            case Character.CONTROL, Character.FORMAT, Character.SURROGATE, Character.PRIVATE_USE, Character.UNASSIGNED,
                    Character.LINE_SEPARATOR, Character.PARAGRAPH_SEPARATOR -> false;
            case Character.SPACE_SEPARATOR -> c == ' ';
            default -> c != 0xFFFD;
        };
    }

    /** A time for people: 1500 is "1.5s". */
    public static String duration(long ms) {
        if (ms < 1000) {
            return ms + "ms";
        }
        long hours = ms / 3_600_000;
        long minutes = ms % 3_600_000 / 60_000;
        long left = ms % 60_000;
        String fraction = left % 1000 == 0 ? "" : String.format(java.util.Locale.ROOT, ".%03d", left % 1000).replaceAll("0+$", "");
        String seconds = left / 1000 + fraction + "s";
        if (hours > 0) {
            return hours + "h" + minutes + "m" + seconds;
        }
        return minutes > 0 ? minutes + "m" + seconds : seconds;
    }
}
