package call

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Fingerprint is the same for two definitions that mean the same: the formatting of
// the parameters, the order of their members and of "required", and defaults that one
// of them spells out make no difference. Descriptions do.
func (f Function) Fingerprint() string {
	body, err := json.Marshal(f.definition())
	if err != nil { // texts, numbers and what was JSON always marshal
		body = []byte(err.Error())
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:16])
}

// Difference names where the definitions of f and other differ, and how: each line has
// the path of a member and what other says there and what f says.
func (f Function) Difference(other Function) []string {
	return difference(nil, "", other.definition(), f.definition())
}

// definition is the function as a value that can be compared.
func (f Function) definition() map[string]any {
	policy := map[string]any{}
	body, err := json.Marshal(f.WithDefaults())
	if err == nil {
		policy, _ = decode(body).(map[string]any)
	}
	return map[string]any{
		"name": f.Name, "description": f.Description, "verifies": f.Verifies,
		"parameters": canonicalSchema(f.Parameters), "policy": policy,
	}
}

// canonicalSchema is a schema's value. Functions take objects, so that a schema without
// a type says the same as one that says so.
func canonicalSchema(schema json.RawMessage) any {
	root, ok := decode(cmp.Or(string(schema), "{}")).(map[string]any)
	if !ok {
		return string(schema)
	}
	if _, ok := root["type"]; !ok {
		root["type"] = "object"
	}
	return root
}

// decode reads JSON so that equal values are equal in Go; what is no JSON is a text.
func decode[T ~string | ~[]byte](body T) any {
	d := json.NewDecoder(bytes.NewReader([]byte(body)))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return string(body)
	}
	return canonical(value)
}

func canonical(value any) any {
	switch v := value.(type) {
	case json.Number:
		return number(v)
	case []any:
		for i := range v {
			v[i] = canonical(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = canonical(v[name])
		}
		if required, ok := v["required"].([]any); ok && !slices.ContainsFunc(required, notText) {
			slices.SortFunc(required, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		}
	}
	return value
}

func notText(v any) bool { _, ok := v.(string); return !ok }

// number gives 1, 1.0 and 1e0 one form. Numbers of absurd size stay as they are.
func number(n json.Number) json.Number {
	_, exponent, _ := strings.Cut(strings.ToLower(string(n)), "e")
	if size, err := strconv.Atoi(cmp.Or(exponent, "0")); err != nil || max(size, -size) > 400 || len(n) > 1000 {
		return n
	}
	exact, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return n
	}
	if exact.IsInt() {
		return json.Number(exact.Num().String())
	}
	digits, _ := exact.FloatPrec()
	return json.Number(exact.FloatString(digits))
}

// maxShown bounds what is shown of a value, in bytes.
const maxShown = 80

// difference appends where b differs from a.
func difference(lines []string, path string, a, b any) []string {
	left, leftOK := a.(map[string]any)
	right, rightOK := b.(map[string]any)
	if !leftOK || !rightOK {
		if was, is := shown(a), shown(b); !equal(a, b) {
			lines = append(lines, fmt.Sprintf("%s is %s and was %s", cmp.Or(path, "the schema"), is, was))
		}
		return lines
	}
	for _, name := range slices.Sorted(maps.Keys(merged(left, right))) {
		at := name
		if path != "" {
			at = path + "." + name
		}
		was, had := left[name]
		is, has := right[name]
		switch {
		case !had:
			lines = append(lines, fmt.Sprintf("%s is %s and was not there", at, shown(is)))
		case !has:
			lines = append(lines, fmt.Sprintf("%s is not there and was %s", at, shown(was)))
		default:
			lines = difference(lines, at, was, is)
		}
	}
	return lines
}

func merged(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func encoded(v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // what was JSON becomes it again
	return bytes.TrimSpace(out.Bytes())
}

func equal(a, b any) bool { return bytes.Equal(encoded(a), encoded(b)) }

func shown(v any) string {
	text := encoded(v)
	if len(text) > maxShown {
		return strings.ToValidUTF8(string(text[:maxShown]), "") + "…"
	}
	return string(text)
}
