// Answers greet_java, one of the five languages of callfan demo --languages.
import com.fasterxml.jackson.annotation.JsonPropertyDescription;
import io.callfan.executor.Effects;
import io.callfan.executor.Executor;

public final class Greet {
    record Person(@JsonPropertyDescription("who is greeted") String name) {}

    public static void main(String[] args) {
        Executor executor = Executor.builder().pool("greeters-java").build();
        executor.function("greet_java", Person.class, (person, call) -> "Hello, " + person.name() + ", from Java " + Runtime.version().feature() + ".")
                .description("Greet somebody from Java.")
                .effects(Effects.NONE);
        executor.run();
    }
}
