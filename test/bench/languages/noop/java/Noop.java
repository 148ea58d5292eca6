// The no-op executor on the Java SDK.
import io.callfan.executor.Effects;
import io.callfan.executor.Executor;

public final class Noop {
    record Input(String text) {}

    public static void main(String[] args) {
        Executor executor = Executor.builder()
                .pool("bench-java")
                .concurrency(Integer.parseInt(System.getenv("BENCH_CONCURRENCY")))
                .build();
        executor.function("noop_java", Input.class, (input, call) -> "ok").effects(Effects.NONE);
        executor.run();
    }
}
