package call

import (
	"crypto/sha256"
	"encoding/base64"
	"regexp"
)

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// longestEncoded is the longest name, in bytes, that stands in a subject in full;
// NATS bounds the whole protocol line.
const longestEncoded = 128

// Token is a function's name as one subject token. A name of 1 to 64 characters
// of [A-Za-z0-9_-] is its own token. Any other becomes "=" and its base64url, or
// past 128 bytes "~" and the base64url of its SHA-256, so that no two names share
// a token and no name can smuggle a dot, a wildcard or a line break into a
// subject (ADR 0003). The empty name has the empty token, which no subject takes.
func Token(function string) string {
	switch {
	case function == "" || plainName.MatchString(function):
		return function
	case len(function) <= longestEncoded:
		return "=" + base64.RawURLEncoding.EncodeToString([]byte(function))
	default:
		sum := sha256.Sum256([]byte(function))
		return "~" + base64.RawURLEncoding.EncodeToString(sum[:])
	}
}
