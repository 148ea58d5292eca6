package io.callfan.executor;

/** A dispatcher refuses a function for good. Asking again without a change gets the same answer. */
public class RegistrationRefusedException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final String function;
    private final String code;

    public RegistrationRefusedException(String function, String code, String message) {
        super("function \"" + function + "\" was refused (" + code + "): " + message);
        this.function = function;
        this.code = code;
    }

    /** The function's name. */
    public String function() {
        return function;
    }

    /** {@code invalid_function}, {@code function_taken}, {@code pool_taken}, or another one of docs/protocol.md. */
    public String code() {
        return code;
    }
}
