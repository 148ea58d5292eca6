package io.callfan.executor;

/** A call is named for ever by three ids of the API. */
public record CallKey(String sessionId, String turnId, String callId) {}
