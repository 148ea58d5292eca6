package io.callfan.executor.internal.nats;

import io.callfan.executor.PermissionDeniedException;
import io.callfan.executor.internal.engine.LinkException;
import io.callfan.executor.internal.engine.Log;
import io.callfan.executor.internal.engine.Moment;
import io.nats.client.Connection;
import io.nats.client.Message;
import io.nats.client.impl.Headers;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Requests that wait no longer than they have to. */
final class Asking {
    private Asking() {}

    /** Asks, and waits for the answer. It ends at once when the connection is lost or the server denies the subject. */
    static Message ask(
            KeptConnection connection, String subject, byte[] payload, Map<String, String> headers, long timeoutMs, Moment until)
            throws LinkException, InterruptedException {
        Connection standing = connection.standing();
        CompletableFuture<Message> answer = new CompletableFuture<>();
        List<Runnable> forget = List.of(
                connection.denials().on(denied -> {
                    if (denied.subject().equals(subject)) {
                        answer.completeExceptionally(denied);
                    }
                }),
                connection.down().on(() -> answer.completeExceptionally(new NotConnected())),
                until.on(() -> answer.completeExceptionally(new LinkException.GivenUp())));
        try {
            CompletableFuture<Message> asked = standing.request(subject, headersOf(headers), payload);
            asked.whenComplete((message, error) -> {
                if (error == null) {
                    answer.complete(message);
                } else {
                    answer.completeExceptionally(new LinkException("no answer on " + subject + ": " + Log.textOf(error)));
                }
            });
            answer.whenComplete((message, error) -> asked.cancel(false));
            return answer.get(timeoutMs, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            throw new LinkException("no answer on " + subject + " within " + timeoutMs + " ms");
        } catch (ExecutionException e) {
            throw failure(e.getCause());
        } catch (IllegalStateException e) {
            throw new NotConnected();
        } finally {
            answer.cancel(false);
            forget.forEach(Runnable::run);
        }
    }

    private static LinkException failure(Throwable cause) {
        if (cause instanceof PermissionDeniedException denied) {
            throw denied;
        }
        return cause instanceof LinkException known ? known : new LinkException(Log.textOf(cause));
    }

    private static Headers headersOf(Map<String, String> headers) {
        if (headers.isEmpty()) {
            return null;
        }
        Headers made = new Headers();
        headers.forEach(made::add);
        return made;
    }
}
