package call

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"strconv"
	"strings"
)

// ErrInvalidKey is wrapped by the errors of ParseKey.
var ErrInvalidKey = errors.New("invalid call key")

// Key names one call for ever: the session that asked, the turn in which it
// asked, and the call itself. The three ids are the API's own bytes.
type Key struct {
	Session string `json:"session_id"`
	Turn    string `json:"turn_id"`
	Call    string `json:"call_id"`
}

// String is the key as people and headers see it: the three ids, each escaped
// for a URL path, joined by slashes. ParseKey reads it back.
func (k Key) String() string {
	return url.PathEscape(k.Session) + "/" + url.PathEscape(k.Turn) + "/" + url.PathEscape(k.Call)
}

// ParseKey reads what Key.String wrote. Its errors wrap ErrInvalidKey.
func ParseKey(s string) (Key, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 {
		return Key{}, fmt.Errorf("%w %q: want session/turn/call", ErrInvalidKey, s)
	}
	for i, p := range parts {
		id, err := url.PathUnescape(p)
		if err != nil {
			return Key{}, fmt.Errorf("%w %q: %w", ErrInvalidKey, s, err)
		}
		if id == "" {
			return Key{}, fmt.Errorf("%w %q: an id is empty", ErrInvalidKey, s)
		}
		parts[i] = id
	}
	return Key{Session: parts[0], Turn: parts[1], Call: parts[2]}, nil
}

// Hash is 22 characters of [A-Za-z0-9_-] that stand for the key where its length
// or its characters would matter: message ids, idempotency keys, store keys. It
// is 132 bits of a SHA-256 over the length-prefixed ids.
func (k Key) Hash() string {
	sum := sha256.Sum256(appendIDs(make([]byte, 0, 128), k.Session, k.Turn, k.Call))
	return base64.RawURLEncoding.EncodeToString(sum[:17])[:22]
}

// appendIDs appends ids with their lengths, so that two lists are never alike.
func appendIDs(dst []byte, ids ...string) []byte {
	for _, id := range ids {
		dst = strconv.AppendInt(dst, int64(len(id)), 10)
		dst = append(dst, ':')
		dst = append(dst, id...)
	}
	return dst
}

// IdempotencyKey is what a handler hands to its own downstreams. It is the same
// for every attempt of the call.
func (k Key) IdempotencyKey() string { return "call_" + k.Hash() }

// Partition is the partition, from 0 to n-1, that a session belongs to. All
// calls of a session share one, so that one owner sees them all.
func Partition(session string, n int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(session))
	return int(h.Sum32() % uint32(n)) //nolint:gosec // n is a small positive setting
}
