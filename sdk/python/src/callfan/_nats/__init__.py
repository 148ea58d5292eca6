"""The queue over NATS JetStream, with nats-py."""
