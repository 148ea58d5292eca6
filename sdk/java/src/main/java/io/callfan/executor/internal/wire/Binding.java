package io.callfan.executor.internal.wire;

/** What a registered executor needs to pull calls. */
public record Binding(String callsStream, String consumer, long ackWaitMs, long maxPayload, String resultPrefix, long refreshMs) {}
