// Answers calls of get_customer.
import { Executor } from "callfan";
import { z } from "zod";

export const ex = new Executor({ pool: "customers" }); // NATS_URL says where; without it nats://127.0.0.1:4222

ex.function(
  "get_customer",
  {
    description: "Look up a customer by ID.",
    input: z.object({ customer_id: z.string().describe("the number on the customer's invoices") }),
    effects: "none",
  },
  ({ customer_id }) => {
    if (customer_id !== "123") return { found: false };
    return { found: true, name: "Example Customer" };
  },
);

if (import.meta.filename === process.argv[1]) await ex.run();
