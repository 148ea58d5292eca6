package io.callfan.executor.internal.engine;

import io.callfan.executor.CallKey;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** Remembers cancel notices about calls that are not here: a notice may overtake its call. */
final class Notices {
    /** How long, at least, a notice is remembered, and how many. */
    private static final long FOR_NANOS = TimeUnit.SECONDS.toNanos(30);

    private static final int MOST = 10_000;

    private Set<CallKey> recent = new HashSet<>();
    private Set<CallKey> older = new HashSet<>();
    private long since = System.nanoTime();

    void note(CallKey key) {
        long now = System.nanoTime();
        if (now - since > FOR_NANOS || recent.size() >= MOST) {
            older = recent;
            recent = new HashSet<>();
            since = now;
        }
        recent.add(key);
    }

    boolean about(CallKey key) {
        return recent.contains(key) || older.contains(key);
    }
}
