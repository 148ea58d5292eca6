"""Answers calls of get_customer."""

from callfan import Executor

ex = Executor(pool="customers")  # NATS_URL says where; without it nats://127.0.0.1:4222


@ex.function(effects="none")
def get_customer(customer_id: str) -> dict[str, object]:
    """Look up a customer by ID.

    Args:
        customer_id: the number on the customer's invoices
    """
    if customer_id != "123":
        return {"found": False}
    return {"found": True, "name": "Example Customer"}


if __name__ == "__main__":
    ex.run()
