package io.callfan.executor.internal.wire;

/** What an attempt came to. */
public sealed interface Outcome {
    /** The word of the protocol. */
    String kind();

    /** @param output JSON: a string, an array of content parts, or null */
    record Success(String output) implements Outcome {
        @Override
        public String kind() {
            return "success";
        }
    }

    /** @param cause null for a business failure without one */
    record Failed(String error, String cause) implements Outcome {
        @Override
        public String kind() {
            return "failure";
        }
    }

    /** A technical failure. */
    record Again(String reason, long afterMs) implements Outcome {
        @Override
        public String kind() {
            return "retry";
        }
    }

    /** It may have run, and it could not be found out. */
    record Uncertain(String reason) implements Outcome {
        @Override
        public String kind() {
            return "uncertain";
        }
    }

    /** It was never started, or may be run again. */
    record Released() implements Outcome {
        @Override
        public String kind() {
            return "released";
        }
    }
}
