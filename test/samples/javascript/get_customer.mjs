// The look-up that the sample calls and leaves to its reader. It finds the customer whom the samples in Go and Java find.

export function getCustomer({ customer_id: customerId }) {
  const customer = customerId === "123" ? { name: "Example Customer", plan: "pro" } : null;
  return { found: customer !== null, customer };
}
