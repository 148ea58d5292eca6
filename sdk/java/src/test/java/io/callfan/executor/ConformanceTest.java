package io.callfan.executor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.callfan.executor.conformance.ConformanceExecutor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The conformance suite against the conformance executor of this SDK. */
class ConformanceTest {
    @Test
    @Timeout(600)
    void passesInFull(@TempDir Path directory) throws IOException, InterruptedException {
        Path arguments = Files.writeString(
                directory.resolve("java-arguments"),
                "-XX:TieredStopAtLevel=1\n-XX:+UseSerialGC\n-cp \"" + System.getProperty("java.class.path") + "\"\n");
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        String executor = "exec '" + java + "' '@" + arguments + "' " + ConformanceExecutor.class.getName();
        String output = Programs.run(
                "'" + Programs.callfan() + "' conformance --executor \"$EXECUTOR\"", directory, Map.of("EXECUTOR", executor));
        List<String> lines = output.lines().filter(line -> line.startsWith("{")).toList();
        JsonNode report = Fixtures.MAPPER.readTree(lines.get(lines.size() - 1));
        assertEquals("java full", report.path("language").asText() + " " + report.path("level").asText());
        assertEquals("[] []", report.path("failed_tests") + " " + report.path("skipped_tests"), output);
        assertTrue(report.path("passed").asInt() >= 100, output);
    }
}
