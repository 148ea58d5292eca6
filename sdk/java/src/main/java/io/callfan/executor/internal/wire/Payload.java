package io.callfan.executor.internal.wire;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * A call's payload: its members that are texts, and the very bytes of its arguments. They are found by a parser that does
 * not recurse and builds no numbers, so that neither nesting nor digits of the arguments stop it.
 *
 * @param arguments null when there are none
 */
record Payload(Map<String, String> texts, byte[] arguments) {
    private static final JsonFactory JSON = JsonFactory.builder()
            .streamReadConstraints(StreamReadConstraints.builder()
                    .maxNestingDepth(Integer.MAX_VALUE)
                    .maxNumberLength(Integer.MAX_VALUE)
                    .maxStringLength(Integer.MAX_VALUE)
                    .maxNameLength(Integer.MAX_VALUE)
                    .build())
            .disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
            .disable(JsonFactory.Feature.FAIL_ON_SYMBOL_HASH_OVERFLOW)
            .build();

    /** Takes a payload apart. */
    static Payload read(byte[] bytes) throws IOException, NotACall {
        if (bytes.length < 2 || bytes[0] == 0 || bytes[1] == 0 || (bytes[0] & 0x80) != 0) {
            throw new NotACall("the payload cannot be read: it is not one JSON object"); // Jackson would guess UTF-16 or skip a mark
        }
        Map<String, String> texts = new HashMap<>();
        byte[] arguments = null;
        try (JsonParser parser = JSON.createParser(bytes)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) {
                throw new NotACall("the payload cannot be read: it is not one JSON object");
            }
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                String name = parser.currentName();
                JsonToken value = parser.nextToken();
                texts.remove(name); // of members that come twice the last one counts
                if (name.equals("arguments")) {
                    int from = (int) parser.currentTokenLocation().getByteOffset();
                    parser.skipChildren();
                    parser.finishToken();
                    arguments = trimmed(bytes, from, (int) parser.currentLocation().getByteOffset());
                } else if (value == JsonToken.VALUE_STRING) {
                    texts.put(name, parser.getText());
                } else {
                    parser.skipChildren();
                }
            }
            if (parser.nextToken() != null) {
                throw new NotACall("the payload cannot be read: something follows the JSON object");
            }
        }
        return new Payload(texts, arguments);
    }

    private static byte[] trimmed(byte[] bytes, int from, int to) {
        int end = to;
        while (end > from && (bytes[end - 1] == ' ' || bytes[end - 1] == '\n' || bytes[end - 1] == '\r' || bytes[end - 1] == '\t')) {
            end--;
        }
        return Arrays.copyOfRange(bytes, from, end);
    }
}
