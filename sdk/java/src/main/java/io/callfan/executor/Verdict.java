package io.callfan.executor;

import java.util.Objects;

/** What a verify handler found out about an earlier run. */
public final class Verdict {
    /** The kinds of verdicts. */
    public enum Finding {
        DONE,
        NOT_DONE,
        CANNOT_TELL
    }

    private final Finding finding;
    private final Object output;
    private final String reason;

    private Verdict(Finding finding, Object output, String reason) {
        this.finding = finding;
        this.output = output;
        this.reason = reason;
    }

    /** The earlier run took effect. The call succeeds with this output, which is what a handler may return. */
    public static Verdict done(Object output) {
        return new Verdict(Finding.DONE, output, "");
    }

    /** The earlier run did not take effect and will not do so any more. The handler is run. */
    public static Verdict notDone() {
        return new Verdict(Finding.NOT_DONE, null, "");
    }

    /** It could not be found out. The handler is not run; the reason is for operators. */
    public static Verdict cannotTell(String reason) {
        return new Verdict(Finding.CANNOT_TELL, null, Objects.requireNonNull(reason, "reason"));
    }

    public Finding finding() {
        return finding;
    }

    /** Of {@link #done(Object)}. */
    public Object output() {
        return output;
    }

    /** Of {@link #cannotTell(String)}, else empty. */
    public String reason() {
        return reason;
    }
}
