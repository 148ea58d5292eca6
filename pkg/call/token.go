package call

import (
	"crypto/sha256"
	"encoding/base64"
)

// plain says whether a name is a subject token as it is. It is asked for every
// message, hence no regular expression.
func plain(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

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
	case function == "" || plain(function):
		return function
	case len(function) <= longestEncoded:
		return "=" + base64.RawURLEncoding.EncodeToString([]byte(function))
	default:
		sum := sha256.Sum256([]byte(function))
		return "~" + base64.RawURLEncoding.EncodeToString(sum[:])
	}
}
