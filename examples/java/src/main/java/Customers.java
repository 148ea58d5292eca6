// Answers calls of get_customer.
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonPropertyDescription;
import io.callfan.executor.Effects;
import io.callfan.executor.Executor;
import java.util.Map;

public final class Customers {
    record Input(@JsonProperty("customer_id") @JsonPropertyDescription("the number on the customer's invoices") String customerId) {}

    record Customer(boolean found, String name) {}

    static Executor executor() {
        Executor executor = Executor.builder().pool("customers").build(); // NATS_URL says where; without it nats://127.0.0.1:4222
        executor.function("get_customer", Input.class, (input, call) -> {
            if (!input.customerId().equals("123")) {
                return Map.of("found", false);
            }
            return new Customer(true, "Example Customer");
        }).description("Look up a customer by ID.").effects(Effects.NONE);
        return executor;
    }

    public static void main(String[] args) {
        executor().run();
    }
}
