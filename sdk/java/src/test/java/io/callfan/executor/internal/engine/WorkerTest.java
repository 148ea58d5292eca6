package io.callfan.executor.internal.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.callfan.executor.Effects;
import io.callfan.executor.Executor;
import io.callfan.executor.OnUncertain;
import io.callfan.executor.Verdict;
import io.callfan.executor.internal.wire.Dispatch;
import io.callfan.executor.internal.wire.Outcome;
import io.callfan.executor.internal.wire.Standing;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The engine over a fake queue. */
@Timeout(60)
class WorkerTest {
    private static Executor serving(String name, io.callfan.executor.Handler<String> handler) {
        Executor executor = Bundle.executor();
        executor.rawFunction(name, handler);
        return executor;
    }

    private static void eventually(BooleanSupplier condition) throws InterruptedException {
        for (int tries = 0; !condition.getAsBoolean(); tries++) {
            assertTrue(tries < 4000, "waited in vain");
            TimeUnit.MILLISECONDS.sleep(5);
        }
    }

    @Test
    void aCallThatIsDeliveredAgainWhileItRunsIsLeftToTheRunInHand() throws InterruptedException {
        AtomicInteger entered = new AtomicInteger();
        CountDownLatch running = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        Executor executor = serving("f", (input, call) -> {
            entered.incrementAndGet();
            running.countDown();
            release.await();
            return "once";
        });
        try (Bundle bundle = new Bundle(executor)) {
            Dispatch d = Bundle.dispatch("f");
            FakeMessage first = new FakeMessage(d);
            FakeMessage second = new FakeMessage(d, 2);
            bundle.link.add(first);
            running.await();
            bundle.link.add(second);
            FakeMessage other = new FakeMessage(Bundle.dispatch("g"));
            bundle.settle(other); // what came before it was taken
            release.countDown();
            Bundle.await(first.over);
            assertEquals(1, entered.get());
            assertEquals(List.of(1, 0), List.of(first.acked.get(), second.acked.get()));
        }
    }

    @Test
    void anOutcomeIsReportedAgainUntilItIsStoredAndTheAckComesAfterIt() throws InterruptedException {
        FakeLink link = new FakeLink();
        FakeMessage message = new FakeMessage(Bundle.dispatch("f"));
        AtomicInteger tries = new AtomicInteger();
        AtomicInteger ackedBefore = new AtomicInteger();
        link.storing = outcome -> {
            ackedBefore.addAndGet(message.acked.get());
            if (tries.incrementAndGet() < 3) {
                throw new LinkException("no responders");
            }
        };
        try (Bundle bundle = new Bundle(serving("f", (input, call) -> "x"), link, 5000)) {
            bundle.settle(message);
        }
        assertEquals(3, tries.get());
        assertEquals(0, ackedBefore.get());
        assertEquals(1, message.acked.get());
    }

    @Test
    void aResultThatIsTooLargeBecomesAFailure() throws InterruptedException {
        FakeLink link = new FakeLink();
        link.storing = outcome -> {
            if (outcome instanceof Outcome.Success) {
                throw new LinkException.TooLarge(2000, 1000);
            }
        };
        try (Bundle bundle = new Bundle(serving("f", (input, call) -> "x"), link, 5000)) {
            bundle.settle(new FakeMessage(Bundle.dispatch("f")));
            assertEquals(List.of(new Outcome.Failed("result too large (2000 bytes, limit 1000)", "too_large")), bundle.outcomes());
        }
    }

    @Test
    void aCancelledCallInterruptsItsHandlerAndReportsNothing() throws InterruptedException {
        CountDownLatch running = new CountDownLatch(1);
        AtomicBoolean told = new AtomicBoolean();
        AtomicBoolean found = new AtomicBoolean();
        Executor executor = serving("f", (input, call) -> {
            call.onCancel(() -> told.set(true));
            running.countDown();
            try {
                Thread.sleep(60_000);
            } finally {
                found.set(call.isCancelled());
            }
            return "late";
        });
        try (Bundle bundle = new Bundle(executor)) {
            FakeMessage message = new FakeMessage(Bundle.dispatch("f"));
            bundle.link.add(message);
            running.await();
            bundle.link.cancel(message.call().key());
            Bundle.await(message.over);
            eventually(() -> told.get() && found.get());
            assertEquals(List.of(), bundle.outcomes());
        }
    }

    @Test
    void aNoticeThatOvertookItsCallHasItLookedUp() throws InterruptedException {
        AtomicBoolean ran = new AtomicBoolean();
        FakeLink link = new FakeLink();
        link.standing = Standing.CANCELLED;
        try (Bundle bundle = new Bundle(serving("f", (input, call) -> ran.getAndSet(true)), link, 5000)) {
            Bundle.await(link.served);
            Dispatch d = Bundle.dispatch("f");
            link.cancel(d.key());
            bundle.settle(new FakeMessage(d));
            assertEquals(1, link.lookups.get());
            assertEquals(false, ran.get());
            assertEquals(List.of(), bundle.outcomes());
        }
    }

    @Test
    void aTimeoutIsAnsweredAtOnceAndWhatComesLaterIsIgnored() throws InterruptedException {
        CountDownLatch late = new CountDownLatch(1);
        Executor executor = Bundle.executor();
        executor.rawFunction("f", (input, call) -> {
            try {
                Thread.sleep(60_000);
            } catch (InterruptedException e) {
                late.countDown();
            }
            return "late";
        }).timeout(Duration.ofMillis(50));
        try (Bundle bundle = new Bundle(executor)) {
            bundle.settle(new FakeMessage(Bundle.dispatch("f")));
            late.await();
            assertEquals(List.of(new Outcome.Failed("timed out after 50ms", "timeout")), bundle.outcomes());
        }
    }

    @Test
    void aHandlersThreadIsCleanForTheNextCall() throws InterruptedException {
        AtomicBoolean dirty = new AtomicBoolean();
        Executor executor = serving("f", (input, call) -> {
            dirty.compareAndSet(false, Thread.currentThread().isInterrupted());
            Thread.currentThread().interrupt();
            return "x";
        });
        try (Bundle bundle = new Bundle(executor)) {
            for (int i = 0; i < 5; i++) {
                bundle.settle(new FakeMessage(Bundle.dispatch("f")));
            }
        }
        assertEquals(false, dirty.get());
    }

    @Test
    void aStopLetsRunningCallsFinishAndGivesBackWhatWasNotStarted() throws InterruptedException {
        CountDownLatch running = new CountDownLatch(1);
        Executor executor = serving("f", (input, call) -> {
            running.countDown();
            Thread.sleep(100);
            return "done";
        });
        FakeMessage message = new FakeMessage(Bundle.dispatch("f"));
        Bundle bundle = new Bundle(executor);
        bundle.link.add(message);
        running.await();
        bundle.close();
        assertEquals(List.of(new Outcome.Success("\"done\"")), bundle.outcomes());
        assertEquals(1, message.acked.get());
    }

    @Test
    void theHardStopInterruptsHandlers() throws InterruptedException {
        CountDownLatch running = new CountDownLatch(4);
        io.callfan.executor.Handler<String> forever = (input, call) -> {
            running.countDown();
            Thread.sleep(60_000);
            return "";
        };
        Executor executor = Bundle.executor();
        executor.rawFunction("again", forever).effects(Effects.NONE);
        executor.rawFunction("once", forever);
        executor.rawFunction("checked", forever).verify((input, call) -> Verdict.notDone());
        executor.rawFunction("asked", forever).onUncertain(OnUncertain.PARK);
        Bundle bundle = new Bundle(executor, new FakeLink(), 50);
        List<FakeMessage> messages =
                List.of("again", "once", "checked", "asked").stream().map(name -> new FakeMessage(Bundle.dispatch(name))).toList();
        messages.forEach(bundle.link::add);
        running.await();
        bundle.close();
        Map<String, Outcome> reported =
                bundle.link.reports.stream().collect(Collectors.toMap(stored -> stored.d().function(), FakeLink.Stored::outcome));
        assertInstanceOf(Outcome.Released.class, reported.get("again"));
        assertInstanceOf(Outcome.Uncertain.class, reported.get("asked"));
        assertEquals("unknown_outcome", ((Outcome.Failed) reported.get("once")).cause());
        assertNull(reported.get("checked"));
        assertEquals(List.of(1, 1, 0, 1), messages.stream().map(message -> message.acked.get()).toList());
    }

    @Test
    void aMessageThatIsNoCallIsLeftThreeTimesThenTerminated() throws InterruptedException {
        try (Bundle bundle = new Bundle(serving("f", (input, call) -> ""))) {
            FakeMessage left = new FakeMessage(null, 3);
            FakeMessage ended = new FakeMessage(null, 4);
            bundle.link.add(left);
            bundle.settle(ended);
            assertNull(left.terminated);
            assertEquals("no call", ended.terminated);
            assertEquals(0, left.acked.get() + ended.acked.get());
        }
    }

    @Test
    void aFunctionThatIsNotServedIsGivenBackUnlessItMayHaveRun() throws InterruptedException {
        FakeMessage again = new FakeMessage(Bundle.dispatch("g"), 2);
        try (Bundle bundle = new Bundle(serving("f", (input, call) -> ""))) {
            bundle.link.add(again);
            bundle.settle(new FakeMessage(Bundle.dispatch("g")));
            assertEquals(List.of(new Outcome.Released()), bundle.outcomes());
        }
        assertEquals(0, again.acked.get());
    }

    @Test
    void leasesAreExtendedWhileAHandlerComputes() throws InterruptedException {
        FakeLink link = new FakeLink();
        link.ackWaitMs = 60;
        FakeMessage message = new FakeMessage(Bundle.dispatch("f"));
        Executor executor = serving("f", (input, call) -> {
            while (message.extended.get() < 4) {
                Thread.onSpinWait();
            }
            return "x";
        });
        try (Bundle bundle = new Bundle(executor, link, 5000)) {
            bundle.settle(message);
        }
        assertTrue(message.extended.get() >= 4);
    }

    @Test
    void aProcessThatStoodStillDoubtsForASecond() {
        AtomicLong now = new AtomicLong();
        Leases leases = new Leases(now::get);
        leases.beat(); // its timer is not started
        assertEquals(false, leases.doubtful());
        now.addAndGet(26_000);
        assertEquals(false, leases.doubtful());
        now.addAndGet(28_000);
        assertEquals(true, leases.doubtful());
        now.addAndGet(999);
        assertEquals(true, leases.doubtful());
        now.addAndGet(2);
        assertEquals(false, leases.doubtful());
        leases.stop();
    }

    @Test
    void aCallThatMayHaveBeenStuckInTheNetworkIsNotStarted() throws InterruptedException {
        AtomicInteger runs = new AtomicInteger();
        io.callfan.executor.Handler<String> handler = (input, call) -> runs.incrementAndGet();
        Executor executor = serving("fails", handler);
        executor.rawFunction("reruns", handler).effects(Effects.IDEMPOTENT);
        try (Bundle bundle = new Bundle(executor)) {
            for (String name : List.of("fails", "reruns")) {
                FakeMessage late = new FakeMessage(Bundle.dispatch(name));
                late.transitMs = 15_001;
                bundle.settle(late);
            }
            assertEquals("unknown_outcome", ((Outcome.Failed) bundle.outcomes().get(0)).cause());
            assertInstanceOf(Outcome.Success.class, bundle.outcomes().get(1));
        }
        assertEquals(1, runs.get());
    }

    @Test
    void aCrashIsNotToldToTheModel() throws InterruptedException {
        try (Bundle bundle = new Bundle(serving("f", (input, call) -> {
            throw new IllegalStateException("secret-detail");
        }))) {
            bundle.settle(new FakeMessage(Bundle.dispatch("f")));
            assertEquals(List.of(new Outcome.Failed("function crashed", "panic")), bundle.outcomes());
        }
    }
}
