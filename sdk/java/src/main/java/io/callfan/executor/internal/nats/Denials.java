package io.callfan.executor.internal.nats;

import io.callfan.executor.PermissionDeniedException;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Tells those who wait which subjects the server denies. It says so on the connection, not as an answer. */
final class Denials {
    private static final Pattern VIOLATION =
            Pattern.compile("permissions violation for (publish|subscription) to \"?([^\"\\s]+)\"?", Pattern.CASE_INSENSITIVE);

    private final Set<Consumer<PermissionDeniedException>> listeners = ConcurrentHashMap.newKeySet();

    /** What an error of the server is about; null when it is about something else. */
    static PermissionDeniedException of(String error) {
        Matcher match = VIOLATION.matcher(error);
        if (!match.find()) {
            return null;
        }
        return new PermissionDeniedException(match.group(1).equalsIgnoreCase("publish") ? "publish" : "subscribe", match.group(2));
    }

    void tell(PermissionDeniedException denied) {
        listeners.forEach(listener -> listener.accept(denied));
    }

    /** Calls back with each subject that the server denies. What is returned takes it back. */
    Runnable on(Consumer<PermissionDeniedException> listener) {
        listeners.add(listener);
        return () -> listeners.remove(listener);
    }
}
