package io.callfan.executor.internal.engine;

import io.callfan.executor.internal.wire.Dispatch;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.spi.LoggingEventBuilder;

/** The log of an executor: constant messages with key-value pairs. It never gets arguments, outputs or nonces. */
public final class Log {
    public static final Logger LOG = LoggerFactory.getLogger("io.callfan.executor");

    private Log() {}

    /** Names the call. */
    static LoggingEventBuilder about(LoggingEventBuilder line, Dispatch d) {
        return line.addKeyValue("session_id", d.key().sessionId())
                .addKeyValue("turn_id", d.key().turnId())
                .addKeyValue("call_id", d.key().callId())
                .addKeyValue("function", d.function())
                .addKeyValue("attempt", d.attempt());
    }

    /** The text of anything that was thrown. */
    public static String textOf(Throwable error) {
        return error.getMessage() == null || error.getMessage().isEmpty() ? error.getClass().getSimpleName() : error.getMessage();
    }
}
