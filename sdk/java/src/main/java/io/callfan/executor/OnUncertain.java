package io.callfan.executor;

/** What happens to a call that may have run without its outcome being known. */
public enum OnUncertain {
    /** It is run again. The default without side effects. */
    RERUN("rerun"),
    /** The verify handler is asked. The default for side effects with a verify handler. */
    VERIFY("verify"),
    /** The model is told that the outcome is unknown. The default for side effects without a verify handler. */
    FAIL("fail"),
    /** The verify handler is asked, if there is one; what it cannot tell is left to an operator. */
    PARK("park");

    private final String wire;

    OnUncertain(String wire) {
        this.wire = wire;
    }

    /** The word of the protocol. */
    public String wire() {
        return wire;
    }

    /** The choice with that word; null when there is none. */
    public static OnUncertain ofWire(String word) {
        for (OnUncertain choice : values()) {
            if (choice.wire.equals(word)) {
                return choice;
            }
        }
        return null;
    }
}
