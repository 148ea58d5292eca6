package io.callfan.executor.conformance;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.callfan.executor.Call;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** The event log of protocol/conformance.md. */
final class Journal {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private final FileChannel file;

    Journal(String path) throws IOException {
        file = FileChannel.open(Path.of(path), StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.APPEND);
    }

    synchronized void log(String event, Call call) {
        String line = MAPPER.createObjectNode()
                .put("event", event)
                .put("function", call.function())
                .put("call_id", call.key().callId())
                .put("attempt", call.attempt())
                .put("idempotency_key", call.idempotencyKey())
                .put("at_ms", System.currentTimeMillis())
                .put("pid", ProcessHandle.current().pid()) + "\n";
        boolean interrupted = Thread.interrupted(); // an interrupted write closes the file
        try {
            file.write(ByteBuffer.wrap(line.getBytes(UTF_8)));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
