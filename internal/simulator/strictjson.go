package simulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// checkStrict reports what the service refuses in a request body beyond the JSON grammar: a byte order mark, data
// after the value, invalid UTF-8, a lone or mispaired surrogate escape anywhere, and a key repeated in one object at
// any depth (keys compare decoded). A nil error means that data is one JSON value free of those.
func checkStrict(data []byte) error {
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return fmt.Errorf("starts with a byte order mark")
	}
	if !utf8.Valid(data) {
		return fmt.Errorf("is not valid UTF-8")
	}
	if !json.Valid(data) {
		return grammarError(data)
	}
	return checkKeysAndEscapes(data)
}

func grammarError(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	var first json.RawMessage
	if err := dec.Decode(&first); err != nil {
		return fmt.Errorf("is not valid JSON: %w", err)
	}
	return fmt.Errorf("has data after the JSON value at byte %d", dec.InputOffset())
}

// checkKeysAndEscapes walks data, which is valid JSON, once.
func checkKeysAndEscapes(data []byte) error {
	var (
		open    []keySet // one per open container; arrays have nil names and never take keys
		wantKey bool     // the next string is a key
	)
	for i := 0; i < len(data); {
		switch data[i] {
		case '{':
			open = append(open, keySet{object: true})
			wantKey = true
			i++
		case '[':
			open = append(open, keySet{})
			wantKey = false
			i++
		case '}', ']':
			open = open[:len(open)-1]
			wantKey = false
			i++
		case ',':
			wantKey = open[len(open)-1].object
			i++
		case '"':
			end, escaped, err := scanString(data, i)
			if err != nil {
				return err
			}
			if wantKey {
				name, err := keyName(data[i:end], escaped)
				if err != nil {
					return err
				}
				if !open[len(open)-1].add(name) {
					return fmt.Errorf("repeats the key %q in one object at byte %d", name, i)
				}
				wantKey = false
			}
			i = end
		default:
			i++
		}
	}
	return nil
}

func keyName(quoted []byte, escaped bool) (string, error) {
	if !escaped {
		return string(quoted[1 : len(quoted)-1]), nil
	}
	var name string
	err := json.Unmarshal(quoted, &name)
	return name, err
}

// scanString returns the end of the string that starts at data[start] and whether it has escapes.
func scanString(data []byte, start int) (end int, escaped bool, err error) {
	for i := start + 1; ; {
		switch data[i] {
		case '"':
			return i + 1, escaped, nil
		case '\\':
			escaped = true
			if data[i+1] != 'u' {
				i += 2
				continue
			}
			unit := hexUnit(data[i+2:])
			switch {
			case unit >= 0xDC00 && unit <= 0xDFFF:
				return 0, true, fmt.Errorf("has a lone surrogate escape at byte %d", i)
			case unit >= 0xD800 && unit <= 0xDBFF:
				next := data[i+6:]
				if len(next) < 6 || next[0] != '\\' || next[1] != 'u' {
					return 0, true, fmt.Errorf("has a lone surrogate escape at byte %d", i)
				}
				if low := hexUnit(next[2:]); low < 0xDC00 || low > 0xDFFF {
					return 0, true, fmt.Errorf("has a mispaired surrogate escape at byte %d", i)
				}
				i += 12
			default:
				i += 6
			}
		default:
			i++
		}
	}
}

func hexUnit(digits []byte) rune {
	var v rune
	for _, c := range digits[:4] {
		v <<= 4
		switch {
		case c >= '0' && c <= '9':
			v |= rune(c - '0')
		case c >= 'a' && c <= 'f':
			v |= rune(c-'a') + 10
		default:
			v |= rune(c-'A') + 10
		}
	}
	return v
}

// keySet remembers the keys of one object: a list while they are few, a map beyond.
type keySet struct {
	object bool
	few    []string
	many   map[string]struct{}
}

// add reports whether name is new.
func (k *keySet) add(name string) bool {
	if k.many != nil {
		if _, known := k.many[name]; known {
			return false
		}
		k.many[name] = struct{}{}
		return true
	}
	if slices.Contains(k.few, name) {
		return false
	}
	k.few = append(k.few, name)
	if len(k.few) > 16 {
		k.many = make(map[string]struct{}, 64)
		for _, known := range k.few {
			k.many[known] = struct{}{}
		}
		k.few = nil
	}
	return true
}
