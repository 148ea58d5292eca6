package io.callfan.executor;

/** The NATS server forbids a subject. */
public class PermissionDeniedException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final String operation;
    private final String subject;

    public PermissionDeniedException(String operation, String subject) {
        super("the NATS server denied to " + operation + " to \"" + subject + "\"; allow it in this user's permissions");
        this.operation = operation;
        this.subject = subject;
    }

    /** {@code publish} or {@code subscribe}. */
    public String operation() {
        return operation;
    }

    public String subject() {
        return subject;
    }
}
