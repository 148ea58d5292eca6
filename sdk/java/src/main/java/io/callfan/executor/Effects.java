package io.callfan.executor;

/** What running a function twice does. */
public enum Effects {
    /** It only reads. */
    NONE("none"),
    /** Nothing more, with the same idempotency key. */
    IDEMPOTENT("idempotent"),
    /** It may do it twice. The default, since it is the safe one. */
    SIDE_EFFECTS("side_effects");

    private final String wire;

    Effects(String wire) {
        this.wire = wire;
    }

    /** The word of the protocol. */
    public String wire() {
        return wire;
    }
}
