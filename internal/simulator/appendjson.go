package simulator

import (
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// The objects of the API carry the user's arguments and outputs, which must leave as the bytes that came in.
// encoding/json compacts and escapes raw messages, so the objects are built by appending.

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. It escapes only what JSON demands; invalid UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[start:i]...), "\uFFFD"...)
				start = i + size
			}
			i += size
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

func appendStringOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendString(b, s)
}

// appendKey appends `,"key":`.
func appendKey(b []byte, key string) []byte {
	b = append(b, ',', '"')
	b = append(b, key...)
	return append(b, '"', ':')
}

func appendStringField(b []byte, key, value string) []byte {
	return appendString(appendKey(b, key), value)
}

func appendIntField(b []byte, key string, value int64) []byte {
	return strconv.AppendInt(appendKey(b, key), value, 10)
}

// appendTimeField appends a Unix time in seconds; zero is null.
func appendTimeField(b []byte, key string, unix int64) []byte {
	if unix == 0 {
		return append(appendKey(b, key), "null"...)
	}
	return appendIntField(b, key, unix)
}

func appendRawField(b []byte, key string, raw []byte) []byte {
	if len(raw) == 0 {
		raw = []byte("null")
	}
	return append(appendKey(b, key), raw...)
}

// appendStringMap appends m as an object with sorted keys.
func appendStringMap(b []byte, m map[string]string) []byte {
	b = append(b, '{')
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, key), ':')
		b = appendString(b, m[key])
	}
	return append(b, '}')
}
