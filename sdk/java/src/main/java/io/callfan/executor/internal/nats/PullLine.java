package io.callfan.executor.internal.nats;

import io.callfan.executor.internal.engine.Moment;
import io.callfan.executor.internal.wire.Pulls;
import io.nats.client.Dispatcher;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** A subscription on which the messages of pulls arrive, one pull after the other. */
final class PullLine {
    private static final Duration DRAIN = Duration.ofSeconds(2);

    private final KeptConnection connection;
    private final String inbox;
    private final Moment down;
    private final Dispatcher dispatcher;
    private int pulls;
    private final Transit transit = new Transit(now());
    private volatile Deliver reader = (message, transitMs) -> {};

    PullLine(KeptConnection connection) throws NotConnected {
        this.connection = connection;
        this.inbox = connection.inbox();
        this.down = connection.down();
        this.dispatcher = connection.subscribeOnce(wildcard(), message -> reader.take(message, transit.read(now(), this::ping)));
    }

    String wildcard() {
        return inbox + ".*";
    }

    Moment down() {
        return down;
    }

    boolean usable() {
        return !down.happened() && dispatcher.isActive();
    }

    String nextReply() {
        return inbox + "." + ++pulls;
    }

    private static long now() {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
    }

    /** Has the server answer, on a thread of its own: what is behind the answer was sent after it was asked. */
    private void ping() {
        Thread pinging = new Thread(() -> {
            if (connection.flush()) {
                transit.answered(dispatcher.getPendingMessageCount() + 1); // and the one that may be read just now
            }
        }, "callfan-ping");
        pinging.setDaemon(true);
        pinging.start();
    }

    void read(Reading reading, long ackWaitMs) {
        transit.asked(now(), Pulls.heartbeatMs(ackWaitMs) * 5 / 2);
        reader = reading::take;
    }

    /** No pull is under way. A call may still come for one that was given up. */
    void idle(Deliver deliver) {
        reader = (message, transitMs) -> {
            if (!Reading.isStatus(message)) {
                deliver.take(message, transitMs);
            }
        };
    }

    /** Ends the subscription, and gives what the server had sent before it knew. */
    void drop(Deliver deliver) throws InterruptedException {
        idle(deliver);
        if (usable()) {
            try {
                dispatcher.drain(DRAIN).get(DRAIN.toMillis(), TimeUnit.MILLISECONDS);
            } catch (ExecutionException | TimeoutException | IllegalStateException e) {
                // the connection was lost meanwhile, and with it what was on its way
            }
        }
        end();
    }

    void end() {
        connection.forget(dispatcher);
    }
}
