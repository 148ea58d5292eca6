package io.callfan.executor.internal.nats;

import io.callfan.executor.PermissionDeniedException;
import io.callfan.executor.internal.engine.LinkException;
import io.callfan.executor.internal.wire.Binding;
import io.callfan.executor.internal.wire.Pulls;
import io.nats.client.Message;
import java.util.concurrent.TimeUnit;

/** One pull under way. */
final class Reading {
    private final String reply;
    private final Binding binding;
    private final Deliver deliver;
    private int left;
    private boolean over;
    private boolean ask;
    private long heardNanos = System.nanoTime();
    private LinkException failure;
    private PermissionDeniedException denied;

    Reading(String reply, Binding binding, int n, Deliver deliver) {
        this.reply = reply;
        this.binding = binding;
        this.left = n;
        this.deliver = deliver;
    }

    String reply() {
        return reply;
    }

    static boolean isStatus(Message message) {
        return message.isStatusMessage() && message.getData().length == 0;
    }

    /** Takes what arrived: a call, or a status. */
    void take(Message message, long transitMs) {
        if (!isStatus(message)) {
            deliver.take(message, transitMs);
            minus(1);
            return;
        }
        synchronized (this) {
            heardNanos = System.nanoTime();
        }
        if (!message.getSubject().equals(reply)) {
            return; // about an earlier pull
        }
        int code = message.getStatus().getCode();
        String description = message.getStatus().getMessage() == null ? "" : message.getStatus().getMessage();
        switch (Pulls.action(code, description)) {
            case CONTINUE -> { }
            // Those that the server counts as sent may still be on their way.
            case ENDED -> minus(Pulls.pending(message.hasHeaders() ? message.getHeaders().getFirst("Nats-Pending-Messages") : null));
            case REGISTER -> fail(new Unbound(binding.consumer() + " was deleted"));
            case PULL_AGAIN -> fail(new LinkException.PullAgain(code + " " + description));
            case ASK_CONSUMER_INFO -> ask();
            case FAULT -> fail(new LinkException("the server refused a pull from " + binding.consumer() + ": " + description));
        }
    }

    private synchronized void minus(int n) {
        heardNanos = System.nanoTime();
        left -= n;
        if (left <= 0) {
            end();
        }
    }

    synchronized void end() {
        over = true;
        notifyAll();
    }

    private synchronized void ask() {
        ask = true;
        end();
    }

    synchronized void fail(LinkException why) {
        if (!over) {
            failure = why;
            end();
        }
    }

    synchronized void deny(PermissionDeniedException why) {
        if (!over) {
            denied = why;
            end();
        }
    }

    /** Waits for the end of the pull; true when nobody answered it. */
    synchronized boolean await() throws LinkException, InterruptedException {
        while (!over) {
            long silentMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - heardNanos);
            if (silentMs >= Pulls.SILENCE_MS) {
                throw new LinkException.PullAgain("no heartbeat for " + Pulls.SILENCE_MS + " ms");
            }
            wait(Pulls.SILENCE_MS - silentMs);
        }
        if (denied != null) {
            throw denied;
        }
        if (failure != null) {
            throw failure;
        }
        return ask;
    }
}
