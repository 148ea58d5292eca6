package io.callfan.executor.internal.nats;

import static io.callfan.executor.internal.engine.Log.LOG;

import io.callfan.executor.PermissionDeniedException;
import io.callfan.executor.internal.engine.Log;
import io.callfan.executor.internal.engine.Moment;
import io.nats.client.Connection;
import io.nats.client.ConnectionListener;
import io.nats.client.Consumer;
import io.nats.client.Dispatcher;
import io.nats.client.ErrorListener;
import io.nats.client.MessageHandler;
import io.nats.client.Nats;
import io.nats.client.Options;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;

/** A connection to NATS that is made, and made again, for ever. */
final class KeptConnection implements ConnectionListener, ErrorListener {
    private static final Duration DRAIN = Duration.ofSeconds(5);
    private static final Duration FLUSH = Duration.ofSeconds(10);
    private static final int MOST_UNSENT = 10_000;

    private final Supplier<Options.Builder> options;
    private final String inboxPrefix;
    private final Moment stopped = new Moment();
    private final Denials denials = new Denials();
    private final List<Subscribed> subscriptions = new ArrayList<>();
    private final Queue<Unsent> unsent = new ArrayDeque<>();
    private final Thread keeper;
    private Connection nc;
    private Moment up = new Moment();
    private Moment down = new Moment();
    private Moment closed = new Moment();
    private String why = "";

    private record Subscribed(String subject, MessageHandler handler) {}

    private record Unsent(String subject, byte[] payload) {}

    /** options are made anew for each connection, so that files of credentials may change. */
    KeptConnection(Supplier<Options.Builder> options, String inboxPrefix) {
        this.options = options;
        this.inboxPrefix = inboxPrefix;
        keeper = new Thread(this::keep, "callfan-nats");
        keeper.setDaemon(true);
        keeper.start();
    }

    Denials denials() {
        return denials;
    }

    /** Happens when the connection that stands now is lost. */
    synchronized Moment down() {
        return down;
    }

    synchronized boolean connected() {
        return up.happened() && nc != null && nc.getStatus() == Connection.Status.CONNECTED;
    }

    /** The server's limit for a message with its headers; 0 before the first connection. */
    synchronized long maxPayload() {
        return nc == null ? 0 : Math.max(nc.getMaxPayload(), 0);
    }

    /** Waits for so long at most until the connection stands. */
    void awaitConnected(long ms, Moment until) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);
        while (!connected() && !until.happened() && System.nanoTime() < end) {
            currentUp().await(50);
            if (!connected()) {
                until.await(10);
            }
        }
    }

    /** Waits until the connection stands; false when the moment came first. */
    boolean awaitConnected(Moment until) throws InterruptedException {
        while (!connected() && !until.happened()) {
            awaitConnected(1000, until);
        }
        return !until.happened();
    }

    private synchronized Moment currentUp() {
        return up;
    }

    /** The connection, which stands. */
    synchronized Connection standing() throws NotConnected {
        if (!connected()) {
            throw new NotConnected();
        }
        return nc;
    }

    /** Sends without waiting. It throws NotConnected while there is no connection: what is sent then would be lost. */
    void publish(String subject, byte[] payload, String reply) throws NotConnected {
        try {
            standing().publish(subject, reply, payload);
        } catch (IllegalStateException e) {
            throw new NotConnected();
        }
    }

    /** Sends now, or as soon as there is a connection. */
    void publishSoon(String subject, byte[] payload) {
        try {
            publish(subject, payload, null);
        } catch (NotConnected e) {
            synchronized (this) {
                if (unsent.size() < MOST_UNSENT) {
                    unsent.add(new Unsent(subject, payload));
                }
            }
        }
    }

    /** Subscribes on a thread of its own, for as long as this connection stands. */
    Dispatcher subscribeOnce(String subject, MessageHandler handler) throws NotConnected {
        try {
            Dispatcher dispatcher = standing().createDispatcher(handler);
            dispatcher.setPendingLimits(-1, -1); // pulls bound what comes
            return dispatcher.subscribe(subject);
        } catch (IllegalStateException e) {
            throw new NotConnected();
        }
    }

    /** Whether the server answered a ping. */
    boolean flush() {
        try {
            standing().flush(FLUSH);
            return true;
        } catch (NotConnected | TimeoutException | IllegalStateException e) {
            return false;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /** Ends what subscribeOnce began. */
    void forget(Dispatcher dispatcher) {
        Connection current;
        synchronized (this) {
            current = nc;
        }
        try {
            current.closeDispatcher(dispatcher);
        } catch (IllegalStateException | IllegalArgumentException e) {
            // the connection, or the dispatcher, is closed already
        }
    }

    /** Subscribes, on each connection anew. */
    synchronized void subscribe(String subject, MessageHandler handler) {
        Subscribed made = new Subscribed(subject, handler);
        subscriptions.add(made);
        if (nc != null && nc.getStatus() != Connection.Status.CLOSED) {
            subscribe(nc, List.of(made));
        }
    }

    private static void subscribe(Connection nc, List<Subscribed> wanted) {
        if (wanted.isEmpty()) {
            return;
        }
        Dispatcher dispatcher = nc.createDispatcher();
        wanted.forEach(s -> dispatcher.subscribe(s.subject(), s.handler()));
    }

    /** A subject of the user's own for replies. */
    String inbox() {
        return inboxPrefix + "." + io.nats.client.NUID.nextGlobal();
    }

    void close() throws InterruptedException {
        stopped.fire();
        Connection last;
        synchronized (this) {
            last = nc;
        }
        if (last != null && last.getStatus() == Connection.Status.CONNECTED) {
            try {
                last.drain(DRAIN).get(DRAIN.toMillis() + 1000, TimeUnit.MILLISECONDS);
            } catch (ExecutionException | TimeoutException | IllegalStateException e) {
                LOG.atDebug().addKeyValue("error", Log.textOf(e)).log("connection was not drained");
            }
        }
        if (last != null) {
            last.close();
        }
        keeper.join(DRAIN.toMillis());
    }

    private void keep() {
        try {
            while (!stopped.happened()) {
                Moment end = new Moment();
                synchronized (this) {
                    closed = end;
                }
                Connection made;
                try {
                    made = Nats.connect(options.get().connectionListener(this).errorListener(this).build());
                } catch (IOException | IllegalArgumentException | IllegalStateException e) {
                    stillDown(Log.textOf(e));
                    stopped.await(ThreadLocalRandom.current().nextLong(250, 750));
                    continue;
                }
                if (stopped.happened()) {
                    made.close();
                    return;
                }
                synchronized (this) {
                    nc = made;
                    subscribe(made, subscriptions);
                }
                cameUp();
                awaitEnd(made, end);
                wentDown();
                if (!stopped.happened()) {
                    LOG.warn("connection to NATS ended; making a new one");
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void awaitEnd(Connection made, Moment end) throws InterruptedException {
        while (!end.await(1000) && made.getStatus() != Connection.Status.CLOSED) {
            if (stopped.happened() && made.getStatus() != Connection.Status.CONNECTED) {
                made.close();
            }
        }
    }

    @Override
    @SuppressWarnings("deprecation") // the one method that has no default
    public void connectionEvent(Connection connection, Events type) {
        switch (type) {
            case DISCONNECTED -> {
                if (!stopped.happened()) {
                    LOG.warn("connection to NATS lost; connecting again until it stands");
                }
                wentDown();
            }
            case RESUBSCRIBED -> cameUp();
            case CLOSED -> ended();
            default -> { }
        }
    }

    private void ended() {
        Moment end;
        synchronized (this) {
            end = closed;
        }
        end.fire();
    }

    @Override
    public void errorOccurred(Connection connection, String error) {
        PermissionDeniedException denied = Denials.of(error);
        if (denied == null) {
            stillDown(error);
            return;
        }
        LOG.atError()
                .addKeyValue("operation", denied.operation())
                .addKeyValue("subject", denied.subject())
                .log("the NATS server denied a subject; allow it in this user's permissions");
        denials.tell(denied);
    }

    @Override
    public void exceptionOccurred(Connection connection, Exception e) {
        if (!(e instanceof RuntimeException)) {
            stillDown(Log.textOf(e));
        } else if (!stopped.happened()) {
            LOG.atError().setCause(e).log("the NATS client has a fault");
        }
    }

    @Override
    public void slowConsumerDetected(Connection connection, Consumer consumer) {
        LOG.warn("messages from NATS are read too slowly");
    }

    private void cameUp() {
        List<Unsent> now;
        Moment happened;
        Connection current;
        synchronized (this) {
            if (up.happened() || nc == null) {
                return;
            }
            why = "";
            down = new Moment();
            happened = up;
            now = List.copyOf(unsent);
            unsent.clear();
            current = nc;
        }
        LOG.atInfo().addKeyValue("server", current.getConnectedUrl()).addKeyValue("max_payload", current.getMaxPayload()).log("connected to NATS");
        happened.fire();
        now.forEach(message -> publishSoon(message.subject(), message.payload()));
    }

    private void wentDown() {
        Moment lost;
        synchronized (this) {
            if (up.happened()) {
                up = new Moment();
            }
            lost = down;
        }
        lost.fire();
    }

    /** Logs why connecting fails when the reason is a new one. */
    private void stillDown(String reason) {
        synchronized (this) {
            if (reason.equals(why) || stopped.happened() || up.happened()) {
                return;
            }
            why = reason;
        }
        LOG.atWarn().addKeyValue("error", reason).log("cannot connect to NATS; trying until it works");
    }
}
