package io.callfan.executor.internal.trace;

import io.callfan.executor.Call;
import java.util.concurrent.Callable;

/** Runs a handler within a span that continues the call's trace, if the program has the OpenTelemetry API. */
public final class Tracing {
    private static final boolean PRESENT = present();

    private Tracing() {}

    private static boolean present() {
        try {
            Class.forName("io.opentelemetry.api.GlobalOpenTelemetry", false, Tracing.class.getClassLoader());
            return true;
        } catch (ClassNotFoundException e) {
            return false;
        }
    }

    public static <T> T within(Call call, Callable<T> handler) throws Exception {
        return PRESENT ? Spans.within(call, handler) : handler.call();
    }
}
