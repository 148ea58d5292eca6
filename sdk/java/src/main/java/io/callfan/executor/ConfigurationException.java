package io.callfan.executor;

/** A setting of the executor or the declaration of a function that cannot be used. Nothing was started. */
public class ConfigurationException extends IllegalArgumentException {
    private static final long serialVersionUID = 1;

    public ConfigurationException(String message) {
        super(message);
    }

    public ConfigurationException(String message, Throwable cause) {
        super(message, cause);
    }
}
