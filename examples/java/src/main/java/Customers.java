// Answers calls of get_customer.
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonPropertyDescription;
import io.callfan.executor.Effects;
import io.callfan.executor.Executor;
import java.util.Map;

public final class Customers {
    record Input(@JsonProperty("customer_id") @JsonPropertyDescription("the number on the customer's invoices") String customerId) {}

    static Executor executor() {
        Executor executor = Executor.builder().pool("customers").build(); // NATS_URL says where; without it nats://127.0.0.1:4222
        executor.function("get_customer", Input.class, (input, call) -> lookUp(input.customerId()))
                .description("Look up a customer by ID.")
                .effects(Effects.NONE);
        return executor;
    }

    private static Map<String, Object> lookUp(String customerId) {
        if (!customerId.equals("123")) {
            return Map.of("found", false);
        }
        return Map.of("name", "Example Customer");
    }

    public static void main(String[] args) {
        executor().run();
    }
}
