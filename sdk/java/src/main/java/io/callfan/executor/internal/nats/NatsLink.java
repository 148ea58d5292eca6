package io.callfan.executor.internal.nats;

import static io.callfan.executor.internal.engine.Log.LOG;
import static java.nio.charset.StandardCharsets.UTF_8;

import io.callfan.executor.CallKey;
import io.callfan.executor.RegistrationRefusedException;
import io.callfan.executor.internal.engine.Link;
import io.callfan.executor.internal.engine.LinkException;
import io.callfan.executor.internal.engine.Moment;
import io.callfan.executor.internal.engine.Taken;
import io.callfan.executor.internal.wire.Binding;
import io.callfan.executor.internal.wire.Calls;
import io.callfan.executor.internal.wire.Definition;
import io.callfan.executor.internal.wire.Dispatch;
import io.callfan.executor.internal.wire.InvalidOutcome;
import io.callfan.executor.internal.wire.Names;
import io.callfan.executor.internal.wire.NotACall;
import io.callfan.executor.internal.wire.Outcome;
import io.callfan.executor.internal.wire.OutcomeMessage;
import io.callfan.executor.internal.wire.Requests;
import io.callfan.executor.internal.wire.Standing;
import io.nats.client.Message;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/** The link over NATS. */
public final class NatsLink implements Link {
    private static final long REGISTER_MS = 10_000;
    private static final long LOOKUP_MS = 2000;
    private static final long PUBLISH_MS = 5000;
    private static final long RETRY_FIRST_MS = 100;
    private static final long REGISTER_LAST_MS = 5000;
    private static final long PULL_LAST_MS = 2000;
    private static final long REBIND_MS = 500;
    private static final int TOO_LARGE = 10054;

    private static final byte[] IN_PROGRESS = "+WPI".getBytes(UTF_8);
    private static final byte[] ACK = "+ACK".getBytes(UTF_8);

    private final Settings settings;
    private final KeptConnection connection;
    private final Names names;
    private final Puller puller;
    private volatile long pullWaitMs = RETRY_FIRST_MS;
    private volatile boolean waiting;

    /** What the link needs to know. */
    public record Settings(String pool, String prefix, String apiPrefix, Connecting connecting, Requests.ExecutorInfo executor) {}

    /** Connects in the background. */
    public NatsLink(Settings settings) {
        this.settings = settings;
        this.connection = new KeptConnection(settings.connecting()::options, settings.connecting().inboxPrefix());
        this.names = new Names(settings.prefix());
        this.puller = new Puller(connection, settings.apiPrefix());
    }

    @Override
    public Binding register(List<Definition> definitions, Moment until) throws InterruptedException {
        List<String> functions = definitions.stream().map(Definition::name).toList();
        while (true) {
            Binding binding = null;
            for (Definition definition : definitions) {
                binding = registerOne(definition, functions, until);
                if (binding == null) {
                    return null;
                }
            }
            if (waiting) {
                LOG.atInfo().addKeyValue("pool", settings.pool()).addKeyValue("functions", functions.size()).log("registered");
            }
            waiting = false;
            if (binding == null || bound(binding, until)) {
                return binding;
            }
            if (until.await(REBIND_MS)) {
                return null;
            }
        }
    }

    /** Asks until somebody decides. */
    private Binding registerOne(Definition definition, List<String> functions, Moment until) throws InterruptedException {
        byte[] body = Requests.registration(settings.pool(), definition, functions, settings.executor());
        String subject = names.register(definition.name());
        for (long wait = RETRY_FIRST_MS; ; wait = Math.min(2 * wait, REGISTER_LAST_MS)) {
            if (!connection.awaitConnected(until)) {
                return null;
            }
            String why;
            try {
                Requests.Reply reply = Requests.registrationReply(Asking.ask(connection, subject, body, Map.of(), REGISTER_MS, until).getData());
                if (reply instanceof Requests.Reply.Accepted accepted) {
                    return accepted.binding();
                }
                if (reply instanceof Requests.Reply.Refused refused) {
                    throw new RegistrationRefusedException(definition.name(), refused.code(), refused.message());
                }
                why = ((Requests.Reply.Unclear) reply).why();
            } catch (LinkException e) {
                why = e.getMessage();
            }
            if (!waiting && !until.happened()) {
                waiting = true;
                LOG.atWarn()
                        .addKeyValue("function", definition.name())
                        .addKeyValue("subject", subject)
                        .addKeyValue("error", why)
                        .log("no dispatcher takes the registration; asking until one does");
            }
            if (until.await(wait)) {
                return null;
            }
        }
    }

    /** Whether the consumer of the binding exists; asked until the server says so. */
    private boolean bound(Binding binding, Moment until) throws InterruptedException {
        for (long wait = RETRY_FIRST_MS; connection.awaitConnected(until); wait = Math.min(2 * wait, PULL_LAST_MS)) {
            try {
                puller.exists(binding, until);
                return true;
            } catch (Unbound e) {
                return false;
            } catch (LinkException e) {
                if (until.await(wait)) {
                    break;
                }
            }
        }
        return false;
    }

    @Override
    public void pull(Binding binding, int n, Moment until, Consumer<Taken> each) throws LinkException, InterruptedException {
        try {
            puller.pull(binding, n, until, (message, transitMs) -> each.accept(taken(message, transitMs)));
            pullWaitMs = RETRY_FIRST_MS;
        } catch (LinkException.PullAgain e) {
            long wait = pullWaitMs;
            pullWaitMs = Math.min(2 * wait, PULL_LAST_MS);
            until.await(wait);
            throw e;
        }
    }

    private Taken taken(Message message, long transitMs) {
        Map<String, String> headers = headersOf(message);
        Dispatch call = null;
        String fault = null;
        try {
            call = Calls.decode(names, message.getSubject(), headers, message.getData());
        } catch (NotACall e) {
            fault = e.getMessage();
        }
        return new Delivered(connection, message.getReplyTo() == null ? "" : message.getReplyTo(), headers, call, fault, transitMs);
    }

    private record Delivered(
            KeptConnection connection, String reply, Map<String, String> headers, Dispatch call, String fault, long transitMs)
            implements Taken {
        @Override
        public int deliveries() {
            return Names.deliveriesOf(reply);
        }

        @Override
        public void inProgress() {
            try {
                connection.publish(reply, IN_PROGRESS, null);
            } catch (NotConnected e) {
                throw new IllegalStateException(e.getMessage(), e);
            }
        }

        @Override
        public void ack() {
            connection.publishSoon(reply, ACK); // a lost one means one more delivery, which is found answered
        }

        @Override
        public void term(String reason) {
            connection.publishSoon(reply, Requests.term(reason, headers));
        }
    }

    private static Map<String, String> headersOf(Message message) {
        Map<String, String> all = new HashMap<>();
        if (message.hasHeaders()) {
            message.getHeaders().forEach((name, values) -> all.put(name, values.isEmpty() || values.get(0) == null ? "" : values.get(0)));
        }
        return all;
    }

    @Override
    public Standing lookup(Dispatch d, Moment until) throws LinkException, InterruptedException {
        connection.awaitConnected(LOOKUP_MS, until);
        Message reply = Asking.ask(connection, names.outcome(d.function()), Requests.lookup(d), Map.of(), LOOKUP_MS, until);
        Standing standing = Requests.standing(reply.getData());
        if (standing == null) {
            throw new LinkException("the dispatcher's answer has no standing");
        }
        return standing;
    }

    @Override
    public void report(Dispatch d, Outcome outcome, Moment until) throws LinkException, InvalidOutcome, InterruptedException {
        OutcomeMessage message = OutcomeMessage.of(d, outcome, settings.executor().id());
        connection.awaitConnected(PUBLISH_MS, until);
        long limit = connection.maxPayload();
        long size = message.size();
        if (limit > 0 && size > limit) {
            throw new LinkException.TooLarge(size, limit);
        }
        Message reply = Asking.ask(connection, message.subject(), message.payload(), message.headers(), PUBLISH_MS, until);
        Requests.PubAck ack = Requests.pubAck(reply.getData());
        if (ack.errorCode() == TOO_LARGE) {
            throw new LinkException.TooLarge(size, limit);
        }
        if (ack.error() != null) {
            throw new LinkException("the stream refused the outcome: " + ack.error());
        }
        if (ack.stream().isEmpty()) {
            throw new LinkException("the stream did not confirm the outcome");
        }
    }

    @Override
    public void onCancel(List<String> functions, BiConsumer<CallKey, String> cancelled) {
        for (String function : functions) {
            connection.subscribe(names.cancel(function), message -> {
                Requests.Cancel notice = Requests.cancel(message.getData());
                if (notice != null) {
                    cancelled.accept(notice.key(), notice.reason());
                }
            });
        }
    }

    @Override
    public void close() throws InterruptedException {
        connection.close();
    }
}
