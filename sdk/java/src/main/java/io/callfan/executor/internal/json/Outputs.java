package io.callfan.executor.internal.json;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.callfan.executor.Content;
import io.callfan.executor.internal.engine.InvalidOutput;
import io.callfan.executor.internal.wire.Texts;
import java.util.Optional;
import java.util.stream.Collectors;

/** Writes what handlers return as the wire carries it: a JSON string, an array of content parts, or null. */
public final class Outputs {
    private final ObjectMapper mapper;

    public Outputs(ObjectMapper mapper) {
        this.mapper = mapper;
    }

    /** A String is that text, bytes are their text, null is no value; any other value is its JSON, serialised once. */
    public String encode(Object value) throws InvalidOutput {
        if (value instanceof Optional<?> optional) {
            return encode(optional.orElse(null));
        }
        if (value == null) {
            return "null";
        }
        if (value instanceof CharSequence text) {
            return Texts.quote(text.toString());
        }
        if (value instanceof byte[] bytes) {
            return Texts.quote(new String(bytes, UTF_8));
        }
        if (value instanceof Content content) {
            return content.parts().stream().map(Outputs::part).collect(Collectors.joining(",", "[", "]"));
        }
        try {
            return Texts.quote(mapper.writeValueAsString(value));
        } catch (JsonProcessingException e) {
            throw new InvalidOutput("the function's output cannot be written as JSON: " + e.getOriginalMessage());
        } catch (StackOverflowError e) {
            throw new InvalidOutput("the function's output cannot be written as JSON: it is nested too deeply");
        }
    }

    private static String part(Content.Part part) {
        if (part instanceof Content.Text text) {
            return "{\"type\":\"input_text\",\"text\":" + Texts.quote(text.text()) + "}";
        }
        return "{\"type\":\"input_image\",\"image_url\":" + Texts.quote(((Content.Image) part).url()) + "}";
    }
}
