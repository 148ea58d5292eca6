// Package retryafter reads the header Retry-After of an HTTP answer.
package retryafter

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longest bounds what a server may wish for.
const longest = 10 * time.Minute

// Parse reads seconds or a date; after is 10 minutes at most.
func Parse(value string, now time.Time) (after time.Duration, ok bool) {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(min(max(seconds, 0), int(longest/time.Second))) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), longest), true
	}
	return 0, false
}
