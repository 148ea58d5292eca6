package io.callfan.executor.internal.engine;

import io.callfan.executor.CallKey;
import io.callfan.executor.internal.wire.Dispatch;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Knows the calls that this process holds, to find a repeated delivery and the target of a cancel notice. */
final class Inflight {
    private final Map<Dispatch.HandoverId, Held> held = new HashMap<>();
    private final Map<CallKey, Set<Held>> byKey = new HashMap<>();
    private final Notices notices = new Notices();

    /** Enters the call; null when this very hand-over is held already. */
    synchronized Held add(Dispatch d) {
        if (held.containsKey(d.handoverId())) {
            return null;
        }
        Held entered = new Held(notices.about(d.key()));
        held.put(d.handoverId(), entered);
        byKey.computeIfAbsent(d.key(), key -> new HashSet<>()).add(entered);
        return entered;
    }

    synchronized void remove(Dispatch d) {
        Held left = held.remove(d.handoverId());
        byKey.computeIfPresent(d.key(), (key, siblings) -> {
            siblings.remove(left);
            return siblings.isEmpty() ? null : siblings;
        });
    }

    /** Cancels all attempts of the call, and says whether there was one. */
    boolean cancel(CallKey key) {
        List<Held> found;
        synchronized (this) {
            Set<Held> siblings = byKey.get(key);
            if (siblings == null) {
                notices.note(key);
                return false;
            }
            found = List.copyOf(siblings);
        }
        found.forEach(Held::cancel);
        return true;
    }
}
