package io.callfan.executor;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Programs that tests start: their output goes to a file, and they end with the test. */
final class Programs {
    private Programs() {}

    /** The program callfan. */
    static String callfan() {
        Path path = Fixtures.ROOT.resolve("bin/callfan");
        if (!Files.exists(path)) {
            throw new IllegalStateException(path + " does not exist; remedy: run make test-java, or make build first");
        }
        return path.toString();
    }

    /** A program of the shell. Signals go to its last command. */
    static Running start(String commands, Path directory, Map<String, String> environment) throws IOException {
        List<String> lines = new ArrayList<>(commands.strip().lines().toList());
        lines.add("exec " + lines.remove(lines.size() - 1));
        return shell(String.join("\n", lines), directory, environment);
    }

    private static Running shell(String commands, Path directory, Map<String, String> environment) throws IOException {
        Path output = Files.createTempFile(directory, "output-", ".txt");
        ProcessBuilder builder = new ProcessBuilder("/bin/sh", "-euc", commands)
                .directory(directory.toFile())
                .redirectErrorStream(true)
                .redirectOutput(output.toFile());
        builder.environment().putAll(environment);
        return new Running(builder.start(), output);
    }

    /** Runs commands to their end, and gives their output. */
    static String run(String commands, Path directory, Map<String, String> environment) throws IOException, InterruptedException {
        try (Running running = shell(commands, directory, environment)) {
            running.ends(300);
            return running.text();
        }
    }

    /** A program that runs. */
    record Running(Process process, Path output) implements AutoCloseable {
        String text() {
            try {
                return Files.readString(output, UTF_8);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        /** Waits until it has printed that, and gives the first group. */
        String prints(String pattern) throws InterruptedException {
            for (int tries = 0; tries < 1200; tries++) {
                Matcher match = Pattern.compile(pattern).matcher(text());
                if (match.find()) {
                    return match.groupCount() > 0 ? match.group(1) : match.group();
                }
                if (!process.isAlive()) {
                    break;
                }
                TimeUnit.MILLISECONDS.sleep(50);
            }
            throw new AssertionError("it does not print " + pattern + ":\n" + text());
        }

        /** Waits for its end, with status 0. */
        void ends(int seconds) throws InterruptedException {
            if (!process.waitFor(seconds, TimeUnit.SECONDS) || process.exitValue() != 0) {
                throw new AssertionError((process.isAlive() ? "it does not end:\n" : "it ended with status " + process.exitValue() + ":\n") + text());
            }
        }

        void stops() throws InterruptedException {
            process.destroy(); // SIGTERM
            ends(60);
        }

        @Override
        public void close() {
            process.destroyForcibly();
        }
    }
}
