package io.callfan.executor;

import java.time.Duration;

/**
 * The wait between attempts. What is null is left to the default: 1 s, doubling, at most 1 min, 20 % longer or shorter.
 *
 * @param multiplier 1 to 1000
 * @param jitter 0 to 1
 */
public record Backoff(Duration initial, Duration max, Double multiplier, Double jitter) {
    public Backoff {
        if (initial != null && max != null && !max.isZero() && max.compareTo(initial) < 0) {
            throw new ConfigurationException("the backoff's max is less than its initial");
        }
        if (multiplier != null && !(multiplier >= 1 && multiplier <= 1000)) {
            throw new ConfigurationException("the backoff's multiplier is " + multiplier + "; use 1 to 1000");
        }
        if (jitter != null && !(jitter >= 0 && jitter <= 1)) {
            throw new ConfigurationException("the backoff's jitter is " + jitter + "; use 0 to 1");
        }
    }

    /** The first wait and the longest. */
    public static Backoff of(Duration initial, Duration max) {
        return new Backoff(initial, max, null, null);
    }
}
