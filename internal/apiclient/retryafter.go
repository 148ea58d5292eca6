package apiclient

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter bounds what a server may ask for; a day is as good as for ever.
const maxRetryAfter = 24 * time.Hour

// retryAfter is the wait that the API asks for, zero when it asks for none. Like
// the official client it prefers Retry-After-Ms to Retry-After and understands
// seconds, fractions of them and dates; unlike it, long waits are respected too.
func retryAfter(h http.Header) time.Duration {
	if d, ok := number(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	value := h.Get("Retry-After")
	if d, ok := number(value, time.Second); ok {
		return d
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date")) // the server's clock, if it tells
	if err != nil {
		now = time.Now()
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

func number(value string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(value, 64)
	if (err != nil && !math.IsInf(n, 1)) || math.IsNaN(n) || n < 0 {
		return 0, false
	}
	return time.Duration(min(n*float64(unit), float64(maxRetryAfter))), true
}
