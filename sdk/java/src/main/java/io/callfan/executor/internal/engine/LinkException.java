package io.callfan.executor.internal.engine;

/** Something that the queue did not do now. */
public class LinkException extends Exception {
    private static final long serialVersionUID = 1;

    public LinkException(String message) {
        super(message);
    }

    /** The outcome is larger than the server takes. The text is for the model. */
    public static final class TooLarge extends LinkException {
        private static final long serialVersionUID = 1;

        public TooLarge(long size, long limit) {
            super("result too large (" + size + " bytes, limit " + limit + ")");
        }
    }

    /** A pull ended early for a reason that passes; the link paces itself. */
    public static final class PullAgain extends LinkException {
        private static final long serialVersionUID = 1;

        public PullAgain(String message) {
            super(message);
        }
    }

    /** The moment that was given came first. */
    public static final class GivenUp extends LinkException {
        private static final long serialVersionUID = 1;

        public GivenUp() {
            super("given up");
        }
    }
}
