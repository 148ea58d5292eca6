package io.callfan.executor.internal.nats;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.callfan.executor.internal.wire.Pulls;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** What is known of messages on their way, and of refused subjects. */
class TransitTest {
    private final AtomicInteger pings = new AtomicInteger();
    private final Transit transit = new Transit(0);

    {
        transit.asked(0, 2500);
    }

    private long read(long nowMs) {
        return transit.read(nowMs, pings::incrementAndGet);
    }

    @Test
    void aMessageIsAsOldAsTheLastSignOfLife() {
        assertEquals(1000, read(1000));
        assertEquals(500, read(1500));
        transit.asked(3000, 2500);
        assertEquals(100, read(3100));
        assertEquals(0, pings.get());
    }

    @Test
    void whatEndsASilenceMayBeAsOldAsItUntilAPingIsAnswered() {
        assertEquals(9000, read(9000));
        assertEquals(9010, read(9010));
        transit.asked(9015, 2500);
        transit.answered(2);
        assertEquals(9020, read(9020));
        assertEquals(9030, read(9030));
        assertEquals(40, read(9040));
        assertEquals(10, read(9050));
        assertEquals(1, pings.get());
    }

    @Test
    void aShortLeaseHasMoreHeartbeats() {
        assertEquals(1000, Pulls.heartbeatMs(30_000));
        assertEquals(1000, Pulls.heartbeatMs(0));
        assertEquals(166, Pulls.heartbeatMs(1000));
    }

    @Test
    void refusedSubjects() {
        assertEquals("fn.result.a.p07", Denials.of("Permissions Violation for Publish to \"fn.result.a.p07\"").subject());
        assertEquals("subscribe", Denials.of("Permissions Violation for Subscription to \"_INBOX.>\"").operation());
        assertNull(Denials.of("Stale Connection"));
    }
}
