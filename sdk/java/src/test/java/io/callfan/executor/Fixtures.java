package io.callfan.executor;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.function.ThrowingConsumer;

/** Reads protocol/fixtures. */
public final class Fixtures {
    public static final ObjectMapper MAPPER = new ObjectMapper();
    /** The root of the repository. */
    public static final Path ROOT = root();

    private Fixtures() {}

    private static Path root() {
        for (Path at = Path.of("").toAbsolutePath(); at != null; at = at.getParent()) {
            if (Files.exists(at.resolve("protocol/fixtures"))) {
                return at;
            }
        }
        throw new IllegalStateException("protocol/fixtures is not found above the working directory; run the tests in a checkout of the repository");
    }

    /** The exact bytes of a file. */
    public static byte[] bytes(String path) {
        try {
            return Files.readAllBytes(ROOT.resolve("protocol/fixtures").resolve(path));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public static JsonNode json(byte[] bytes) throws IOException {
        return MAPPER.readTree(bytes);
    }

    /** One test for each case of an index. */
    public static Stream<DynamicTest> each(String index, ThrowingConsumer<JsonNode> test) throws IOException {
        JsonNode cases = json(bytes(index)).path("cases");
        if (cases.isEmpty()) {
            throw new IllegalStateException(index + " has no cases");
        }
        return StreamSupport.stream(cases.spliterator(), false)
                .map(c -> DynamicTest.dynamicTest("case " + c.path("name").asText(), () -> test.accept(c)));
    }

    public static Map<String, String> headers(JsonNode headers) {
        Map<String, String> all = new LinkedHashMap<>();
        headers.properties().forEach(header -> all.put(header.getKey(), header.getValue().asText()));
        return all;
    }

    /** A member's text; null when it is absent or null. */
    public static String text(JsonNode node, String name) {
        return node.hasNonNull(name) ? node.get(name).asText() : null;
    }
}
