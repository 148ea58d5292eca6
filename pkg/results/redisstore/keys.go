package redisstore

import (
	"net/url"
	"strconv"
	"strings"
)

// keyspace makes the keys. Those that one script uses together share a hash tag.
type keyspace struct{ prefix string }

func (k keyspace) turn(session, turn string) string {
	return k.prefix + ":{" + escape(session) + "}:t:" + escape(turn)
}

// everyTurn is a pattern that matches the keys of all turns, and perhaps others.
func (k keyspace) everyTurn() string {
	return globEscaper.Replace(k.prefix) + ":{*}:t:*"
}

var globEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)

// sessionOf is the session of a turn's key; ok is false for any other key.
func (k keyspace) sessionOf(key string) (session string, ok bool) {
	rest, ok := strings.CutPrefix(key, k.prefix+":{")
	if !ok {
		return "", false
	}
	escaped, turn, ok := strings.Cut(rest, "}:t:")
	if !ok || strings.ContainsAny(escaped+turn, "{}") { // a longer prefix, perhaps
		return "", false
	}
	return unescape(escaped)
}

func (k keyspace) bodies(session, turn string) string {
	return k.prefix + ":{" + escape(session) + "}:r:" + escape(turn)
}

func (k keyspace) turns(session string) string { return k.prefix + ":{" + escape(session) + "}:turns" }

func (k keyspace) lease(partition int) string {
	return k.prefix + ":lease:{p" + strconv.Itoa(partition) + "}"
}

func (k keyspace) attached(partition int) string {
	return k.prefix + ":attached:{p" + strconv.Itoa(partition) + "}"
}

func (k keyspace) version(partition int) string { return k.attached(partition) + ":version" }

func (k keyspace) members() string { return k.prefix + ":members" }

// escape leaves no brace in an id, and makes an empty id a tag of its own: an
// empty tag would spread the keys of one turn over several slots.
func escape(id string) string {
	if id == "" {
		return "%"
	}
	return url.PathEscape(id)
}

// unescape undoes escape.
func unescape(escaped string) (id string, ok bool) {
	if escaped == "%" {
		return "", true
	}
	id, err := url.PathUnescape(escaped)
	return id, err == nil
}
