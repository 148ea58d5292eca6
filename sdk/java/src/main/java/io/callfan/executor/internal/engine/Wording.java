package io.callfan.executor.internal.engine;

/** Texts for the model and for operators that the executor itself decides; docs/protocol.md lists those of the protocol. */
final class Wording {
    static final String UNKNOWN_OUTCOME =
            "the outcome of this call is unknown: an earlier run was interrupted and may or may not have taken effect; do not assume either";
    static final String CRASHED =
            "function crashed or its executors were lost: it was handed out several times and never finished";
    static final String PANIC = "function crashed";
    static final String EXPIRED = "the call's deadline passed before the function was started";
    static final String NO_VERIFY = "on_uncertain is verify, and this executor has no verify handler for the function";
    static final String MAY_HAVE_RUN = "it may have run before, and this executor has no verify handler for the function";
    static final String NOT_LOOKED_UP = "it may have run before, and no dispatcher said in time whether it was answered";
    static final String NOT_VERIFIED = "it may have run before, and the call's deadline passed before it could be verified";
    static final String INTERRUPTED = "the executor stopped and interrupted the function";
    static final String SILENT_FAILURE = "the function failed without saying why";

    private Wording() {}
}
