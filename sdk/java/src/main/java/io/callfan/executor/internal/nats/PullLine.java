package io.callfan.executor.internal.nats;

import io.callfan.executor.internal.engine.Moment;
import io.nats.client.Dispatcher;
import io.nats.client.Message;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/** A subscription on which the messages of pulls arrive, one pull after the other. */
final class PullLine {
    private static final Duration DRAIN = Duration.ofSeconds(2);

    private final KeptConnection connection;
    private final String inbox;
    private final Moment down;
    private final Dispatcher dispatcher;
    private int pulls;
    private volatile Consumer<Message> reader = message -> {};

    PullLine(KeptConnection connection) throws NotConnected {
        this.connection = connection;
        this.inbox = connection.inbox();
        this.down = connection.down();
        this.dispatcher = connection.subscribeOnce(wildcard(), message -> reader.accept(message));
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

    void read(Reading reading) {
        reader = reading::take;
    }

    /** No pull is under way. A call may still come for one that was given up. */
    void idle(Consumer<Message> deliver) {
        reader = message -> {
            if (!Reading.isStatus(message)) {
                deliver.accept(message);
            }
        };
    }

    /** Ends the subscription, and gives what the server had sent before it knew. */
    void drop(Consumer<Message> deliver) throws InterruptedException {
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
