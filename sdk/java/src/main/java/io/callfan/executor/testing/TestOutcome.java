package io.callfan.executor.testing;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.callfan.executor.internal.wire.Outcome;

/**
 * What would be reported about a call.
 *
 * @param kind success, failure, retry, released, uncertain, or an empty text when nothing would be reported, as for a call that
 *     was cancelled or that is left to another executor
 * @param output of a success: a JSON string, an array of content parts, or null; else null
 * @param error of a failure: the text for the model; else empty
 * @param cause of a failure: empty for a business failure without one
 * @param reason of a retry and of uncertainty; else empty
 * @param afterMs of a retry
 */
public record TestOutcome(String kind, JsonNode output, String error, String cause, String reason, long afterMs) {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    static TestOutcome of(Outcome outcome) {
        if (outcome == null) {
            return new TestOutcome("", null, "", "", "", 0);
        }
        if (outcome instanceof Outcome.Success success) {
            return new TestOutcome("success", read(success.output()), "", "", "", 0);
        }
        if (outcome instanceof Outcome.Failed failed) {
            return new TestOutcome("failure", null, failed.error(), failed.cause() == null ? "" : failed.cause(), "", 0);
        }
        if (outcome instanceof Outcome.Again again) {
            return new TestOutcome("retry", null, "", "", again.reason(), again.afterMs());
        }
        if (outcome instanceof Outcome.Uncertain uncertain) {
            return new TestOutcome("uncertain", null, "", "", uncertain.reason(), 0);
        }
        return new TestOutcome(outcome.kind(), null, "", "", "", 0);
    }

    /** The output, which has to be a text. */
    public String text() {
        if (output == null || !output.isTextual()) {
            throw new AssertionError("the call came to " + this + ", not to a text");
        }
        return output.textValue();
    }

    /** The output, which has to be the text of JSON. */
    public JsonNode json() {
        return read(text());
    }

    private static JsonNode read(String json) {
        try {
            return MAPPER.readTree(json);
        } catch (JsonProcessingException e) {
            throw new AssertionError("the output is not JSON: " + e.getOriginalMessage(), e);
        }
    }
}
