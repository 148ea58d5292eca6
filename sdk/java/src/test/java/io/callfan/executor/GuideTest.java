package io.callfan.executor;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Runs docs/executors/java.md: its commands, its programs, and what it promises. */
class GuideTest {
    private static final String SHOP_TEST = """
            import static org.junit.jupiter.api.Assertions.assertEquals;

            import io.callfan.executor.testing.Invocation;
            import java.util.Map;
            import org.junit.jupiter.api.Test;

            class ShopTest {
                static { Shop.declare(); }

                @Test
                void orders() {
                    assertEquals("there is no order 0", Invocation.of(Shop.SHOP, "cancel_order").arguments(Map.of("id", 0)).run().error());
                    assertEquals(2000, Invocation.of(Shop.SHOP, "cancel_order").arguments(Map.of("id", 503)).run().afterMs());
                    assertEquals("cancelled with call_", Invocation.of(Shop.SHOP, "cancel_order").arguments("{\\"id\\":7}").run().text().substring(0, 20));
                }

                @Test
                void payments() {
                    assertEquals("paid 5.0", Invocation.of(Shop.SHOP, "pay").arguments("{\\"amount\\":5}").uncertain().run().text());
                    assertEquals("paid 6.0", Invocation.of(Shop.SHOP, "pay").arguments("{\\"amount\\":6}").uncertain().run().text());
                    assertEquals("ask the bank", Invocation.of(Shop.SHOP, "pay").arguments("{\\"amount\\":2000000}").uncertain().run().reason());
                }
            }
            """;

    private final List<String> ran = new ArrayList<>();

    private static List<String> blocks(String language, String file) throws IOException {
        Matcher match = Pattern.compile("(?ms)^```" + language + "\n(.*?)^```$").matcher(Files.readString(Fixtures.ROOT.resolve(file), UTF_8));
        List<String> found = new ArrayList<>();
        while (match.find()) {
            found.add(match.group(1));
        }
        return found;
    }

    private static String block(String language, String text) throws IOException {
        List<String> found = blocks(language, "docs/executors/java.md").stream().filter(block -> block.contains(text)).toList();
        assertEquals(1, found.size(), "blocks of " + language + " that have " + text);
        return found.get(0);
    }

    private String commands(String text) throws IOException {
        String commands = block("sh", text);
        ran.add(commands);
        return commands.replace("go run ./cmd/callfan", "'" + Programs.callfan() + "'");
    }

    /** A copy, since Maven writes beside the sources, where this test runs. */
    private static void copySdk(Path checkout) throws IOException {
        Path sdk = Fixtures.ROOT.resolve("sdk/java");
        Path copy = checkout.resolve("sdk/java");
        try (Stream<Path> files = Files.walk(sdk.resolve("src/main"))) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                Path target = copy.resolve(sdk.relativize(file));
                Files.createDirectories(target.getParent());
                Files.copy(file, target);
            }
        }
        Files.copy(sdk.resolve("pom.xml"), copy.resolve("pom.xml"));
    }

    @Test
    @Timeout(900)
    void theFiveMinutes(@TempDir Path checkout) throws IOException, InterruptedException {
        Map<String, String> environment = new HashMap<>(Map.of(
                "CALLFAN_DEV_DIR", checkout.resolve("state").toString(),
                "CALLFAN_DEV_NATS_LISTEN", "127.0.0.1:0",
                "CALLFAN_DEV_SIMULATE_LISTEN", "127.0.0.1:0",
                "CALLFAN_LISTEN", "127.0.0.1:0"));
        Path project = checkout.resolve("customers");
        copySdk(checkout);
        Programs.run(commands("install"), checkout, environment);
        Files.writeString(project.resolve("pom.xml"), block("xml", "<artifactId>customers</artifactId>"));
        Files.writeString(project.resolve("src/main/java/Customers.java"), block("java", "Answers calls of get_customer"));
        Files.writeString(project.resolve("src/test/java/CustomersTest.java"), block("java", "class CustomersTest"));
        try (Programs.Running dev = Programs.start(commands("callfan dev"), checkout, environment)) {
            dev.prints("OPENAI_API_KEY=any");
            environment.put("NATS_URL", dev.prints("NATS_URL=(\\S+)"));
            environment.put("CALLFAN_DISPATCHER", dev.prints("health, admin +(\\S+)"));
            try (Programs.Running executor = Programs.start(commands("Customers"), project, environment)) {
                executor.prints("executor serves");
                String ask = commands("callfan ask").replace("http://127.0.0.1:8421/v1", dev.prints("OPENAI_BASE_URL=(\\S+)"));
                String answer = Programs.run(ask, checkout, environment);
                assertTrue(answer.contains("get_customer({\"customer_id\":\"123\"}) = \"{\\\"found\\\":true,\\\"name\\\":\\\"Example Customer\\\"}\""), answer);
                assertTrue(answer.contains("Customer 456 was not found."), answer);
                executor.stops();
            }
            dev.stops();
        }
        Files.writeString(project.resolve("src/main/java/Shop.java"), block("java", "final class Shop"));
        Files.writeString(project.resolve("src/test/java/ShopTest.java"), SHOP_TEST);
        Files.writeString(project.resolve("src/main/java/Readme.java"), blocks("java", "sdk/java/README.md").get(0));
        String tests = Programs.run(commands("mvn --batch-mode test"), project, environment);
        assertTrue(tests.contains("Tests run: 4, Failures: 0, Errors: 0, Skipped: 0"), tests);
        assertEquals(blocks("sh", "docs/executors/java.md").stream().sorted().toList(), ran.stream().sorted().toList(), "a block of commands is not run");
    }

    @Test
    void itsProgramIsTheExample() throws IOException {
        assertEquals(Files.readString(Fixtures.ROOT.resolve("examples/java/src/main/java/Customers.java")), block("java", "Answers calls of"));
        assertEquals(Files.readString(Fixtures.ROOT.resolve("examples/java/pom.xml")), block("xml", "<artifactId>customers</artifactId>"));
    }
}
