package queue

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// appendString appends s as a JSON string.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if b := s[i]; b < 0x20 || b == '"' || b == '\\' || b >= utf8.RuneSelf {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

var errNotObject = errors.New("the payload is not a JSON object")

// members calls each with the name and the untouched bytes of every member of the
// JSON object in body, in order, duplicates included. It copies nothing. Names are
// compared as they are, unlike encoding/json, which ignores their case.
func members(body []byte, each func(name, value []byte) error) error {
	if !json.Valid(body) {
		return errors.New("the payload is not valid JSON")
	}
	// From here on the syntax is known to be right.
	i := skipSpace(body, 0)
	if body[i] != '{' {
		return errNotObject
	}
	for i = skipSpace(body, i+1); body[i] != '}'; i = skipSpace(body, i) {
		if body[i] == ',' {
			i = skipSpace(body, i+1)
		}
		end := skipValue(body, i)
		name, err := memberName(body[i:end])
		if err != nil {
			return err
		}
		i = skipSpace(body, end) // the colon
		i = skipSpace(body, i+1) // the value
		end = skipValue(body, i)
		if err := each(name, body[i:end:end]); err != nil {
			return err
		}
		i = end
	}
	return nil
}

func memberName(raw []byte) ([]byte, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	name, err := decodeString(raw)
	return []byte(name), err
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue gives the index after the value that starts at i.
func skipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for ; ; i++ {
			switch b[i] {
			case '"':
				i = skipString(b, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	default:
		for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' && b[i] != ':' {
			i++
		}
		return i
	}
}

func skipString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// decodeString reads a JSON string. Invalid UTF-8 becomes U+FFFD, as everywhere in Go.
func decodeString(raw []byte) (string, error) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", errors.New("not a string")
	}
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner), nil
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}
