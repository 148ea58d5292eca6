"""The look-up that the sample calls and leaves to its reader: it finds whom the samples in Go and Java find."""


def get_customer(arguments):
    customer = {"name": "Example Customer", "plan": "pro"} if arguments["customer_id"] == "123" else None
    return {"found": customer is not None, "customer": customer}
