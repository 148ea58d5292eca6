package io.callfan.executor.internal.nats;

import io.callfan.executor.internal.engine.LinkException;
import io.callfan.executor.internal.engine.Moment;
import io.callfan.executor.internal.wire.Binding;
import io.callfan.executor.internal.wire.Pulls;
import io.callfan.executor.internal.wire.Requests;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;

/** Pulls calls from a pool's durable consumer. Pulls may run side by side. */
final class Puller {
    private static final long INFO_MS = 2000;

    private final KeptConnection connection;
    private final String apiPrefix;
    private final Deque<PullLine> idle = new ArrayDeque<>();

    Puller(KeptConnection connection, String apiPrefix) {
        this.connection = connection;
        this.apiPrefix = apiPrefix;
    }

    /** Asks for up to n calls. It returns once all came or the pull ended, and throws when it was interrupted. */
    void pull(Binding binding, int n, Moment until, Deliver deliver) throws LinkException, InterruptedException {
        if (!connection.awaitConnected(until)) {
            return;
        }
        PullLine line = line();
        boolean whole = false;
        try {
            read(line, binding, n, until, deliver);
            whole = !until.happened();
        } finally {
            if (whole) {
                line.idle(deliver);
                put(line);
            } else {
                line.drop(deliver);
            }
        }
    }

    private PullLine line() throws LinkException {
        for (PullLine line = take(); line != null; line = take()) {
            if (line.usable()) {
                return line;
            }
            line.end();
        }
        return new PullLine(connection);
    }

    private synchronized PullLine take() {
        return idle.pollLast();
    }

    private synchronized void put(PullLine line) {
        idle.addLast(line);
    }

    private void read(PullLine line, Binding binding, int n, Moment until, Deliver deliver)
            throws LinkException, InterruptedException {
        String request = apiPrefix + ".CONSUMER.MSG.NEXT." + binding.callsStream() + "." + binding.consumer();
        Reading reading = new Reading(line.nextReply(), binding, n, deliver);
        line.read(reading, binding.ackWaitMs());
        List<Runnable> forget = List.of(
                line.down().on(() -> reading.fail(new LinkException.PullAgain("the connection changed"))),
                until.on(reading::end),
                connection.denials().on(denied -> {
                    if (denied.subject().equals(request) || denied.subject().equals(line.wildcard())) {
                        reading.deny(denied);
                    }
                }));
        try {
            String body = Pulls.request(n, connection.maxPayload(), binding.ackWaitMs());
            connection.publish(request, body.getBytes(StandardCharsets.UTF_8), reading.reply());
            if (reading.await()) {
                exists(binding, until);
                throw new LinkException.PullAgain("nobody answers for " + binding.consumer() + " yet");
            }
        } finally {
            forget.forEach(Runnable::run);
        }
    }

    /** Looks whether the pool's consumer exists. It throws Unbound when not. */
    void exists(Binding binding, Moment until) throws LinkException, InterruptedException {
        String subject = apiPrefix + ".CONSUMER.INFO." + binding.callsStream() + "." + binding.consumer();
        int error = Requests.apiError(Asking.ask(connection, subject, new byte[0], Map.of(), INFO_MS, until).getData());
        if (error == 404) {
            throw new Unbound(binding.consumer() + " does not exist");
        }
        if (error != 0) {
            throw new LinkException.PullAgain("the server answers " + error + " about " + binding.consumer());
        }
    }
}
