package io.callfan.executor.internal.engine;

import static io.callfan.executor.Fixtures.text;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import io.callfan.executor.Effects;
import io.callfan.executor.Executor;
import io.callfan.executor.Fixtures;
import io.callfan.executor.Function;
import io.callfan.executor.OnUncertain;
import io.callfan.executor.Verdict;
import io.callfan.executor.internal.wire.Outcome;
import io.callfan.executor.internal.wire.Standing;
import java.io.IOException;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** What is decided about every delivery: protocol/fixtures/decisions.json. */
class DecisionsTest {
    @TestFactory
    Stream<DynamicTest> decisions() throws IOException {
        return Fixtures.each("decisions.json", DecisionsTest::decide);
    }

    private static void decide(JsonNode c) throws InterruptedException {
        AtomicBoolean runs = new AtomicBoolean();
        AtomicBoolean verified = new AtomicBoolean();
        Executor executor = Bundle.executor();
        Function<String> f = executor.rawFunction("f", (input, call) -> {
            runs.set(true);
            return null;
        });
        Arrays.stream(Effects.values()).filter(e -> e.wire().equals(text(c, "effects"))).forEach(f::effects);
        String says = c.path("verify").asText();
        if (!says.isEmpty()) {
            f.verify((input, call) -> {
                verified.set(true);
                return switch (says) {
                    case "done" -> Verdict.done("done before");
                    case "not_done" -> Verdict.notDone();
                    case "cannot_tell" -> Verdict.cannotTell("the bank does not answer");
                    default -> throw new IllegalStateException("no way to the bank");
                };
            });
        }
        FakeLink link = new FakeLink();
        link.standing = Standing.valueOf(c.path("standing").asText().toUpperCase(Locale.ROOT));
        try (Bundle bundle = new Bundle(executor, link, 5000)) {
            OnUncertain choice = OnUncertain.ofWire(text(c, "on_uncertain"));
            bundle.settle(new FakeMessage(Bundle.dispatch("f", c.path("uncertain").asBoolean(), choice), c.path("deliveries").asInt()));
        }
        JsonNode want = c.path("expect");
        Outcome outcome = link.reports.isEmpty() ? null : link.reports.get(0).outcome();
        assertEquals(want.path("looked_up").asBoolean(), link.lookups.get() > 0, "looked up");
        assertEquals(want.path("verified").asBoolean(), verified.get(), "verified");
        assertEquals(want.path("runs").asBoolean(), runs.get(), "runs");
        assertEquals(want.path("kind").asText(), outcome == null ? "" : outcome.kind());
        String cause = outcome instanceof Outcome.Failed failed && failed.cause() != null ? failed.cause() : "";
        assertEquals(want.path("cause").asText(), cause);
        if (want.path("unknown").asBoolean()) {
            assertEquals(true, ((Outcome.Failed) outcome).error().contains("the outcome of this call is unknown"));
        }
    }
}
