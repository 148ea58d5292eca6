package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Bounds of what the model is told, in bytes except for maxLines.
const (
	maxLines = 5
	maxPath  = 160
	maxText  = 220
	maxError = 2 << 10
)

// violation is one thing that does not fit, and where.
type violation struct{ path, text string }

func (v violation) String() string {
	path, text := clip(v.path, maxPath), clip(v.text, maxText)
	if path == "" {
		return text // the arguments as a whole
	}
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` {
		path = quoted // one line each, whatever a member is called
	}
	return path + ": " + text
}

// describe turns the library's tree of errors into lines.
func describe(err *jsonschema.ValidationError) error {
	found := violations(err)
	// The library goes through members in the order of a map.
	slices.SortFunc(found, func(a, b violation) int {
		return cmp.Or(strings.Compare(a.path, b.path), strings.Compare(a.text, b.text))
	})
	found = slices.Compact(found)
	var lines []string
	for _, v := range found[:min(len(found), maxLines)] {
		lines = append(lines, v.String())
	}
	if more := len(found) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return errors.New(clip(strings.Join(lines, "\n"), maxError))
}

// violations are the leaves of the tree, except that alternatives stay together.
func violations(err *jsonschema.ValidationError) []violation {
	here := pointer(err.InstanceLocation)
	switch k := err.ErrorKind.(type) {
	case *kind.Required:
		return each(here, k.Missing, "required and missing")
	case *kind.AdditionalProperties:
		return each(here, k.Properties, "no such member is allowed")
	case *kind.AnyOf:
		return []violation{{here, alternatives(here, err.Causes)}}
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			return []violation{{here, alternatives(here, err.Causes)}}
		}
	case *kind.PropertyNames:
		var texts []string
		for _, v := range below(err.Causes) {
			texts = append(texts, v.text)
		}
		return []violation{{child(here, k.Property), "the member's name: " + strings.Join(texts, "; ")}}
	case *kind.Contains, *kind.MinContains: // the causes are all items that do not count
	default:
		if len(err.Causes) > 0 {
			return below(err.Causes)
		}
	}
	return []violation{{here, text(err)}}
}

func below(causes []*jsonschema.ValidationError) []violation {
	var found []violation
	for _, cause := range causes {
		found = append(found, violations(cause)...)
	}
	return found
}

func each(parent string, members []string, text string) []violation {
	found := make([]violation, len(members))
	for i, member := range members {
		found[i] = violation{child(parent, member), text}
	}
	return found
}

// alternatives says in one line what would have fitted here; its paths start here.
func alternatives(here string, causes []*jsonschema.ValidationError) string {
	if got, wanted := types(causes); wanted != nil {
		return fmt.Sprintf("got %s, want %s", got, strings.Join(wanted, " or "))
	}
	var texts []string
	for i, cause := range causes {
		var parts []string
		for _, v := range violations(cause) {
			v.path = strings.TrimPrefix(v.path, here)
			parts = append(parts, v.String())
		}
		slices.Sort(parts)
		texts = append(texts, fmt.Sprintf("(%d) %s", i+1, strings.Join(parts[:min(len(parts), 2)], ", ")))
	}
	return fmt.Sprintf("fits none of %d alternatives: %s", len(causes), strings.Join(texts[:min(len(texts), 4)], "; "))
}

// types merges alternatives that differ in nothing but the type, as of an optional member.
func types(causes []*jsonschema.ValidationError) (got string, wanted []string) {
	for _, cause := range causes {
		for len(cause.Causes) == 1 {
			if _, ok := cause.ErrorKind.(*kind.Reference); !ok {
				break
			}
			cause = cause.Causes[0]
		}
		k, ok := cause.ErrorKind.(*kind.Type)
		if !ok || len(cause.InstanceLocation) != len(causes[0].InstanceLocation) {
			return "", nil
		}
		got = k.Got
		wanted = append(wanted, k.Want...)
	}
	return got, wanted
}

// text says what is expected, without the value that was found: it may be large.
func text(err *jsonschema.ValidationError) string {
	switch k := err.ErrorKind.(type) {
	case *kind.Type:
		return fmt.Sprintf("got %s, want %s", k.Got, strings.Join(k.Want, " or "))
	case *kind.Enum:
		return "must be one of " + list(k.Want)
	case *kind.Const:
		return "must be " + list([]any{k.Want})
	case *kind.Pattern:
		return "does not match the pattern " + strconv.Quote(k.Want)
	case *kind.Minimum:
		return "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "must be at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("has %d characters, needs at least %d", k.Got, k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("has %d characters, may have at most %d", k.Got, k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("has %d items, needs at least %d", k.Got, k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("has %d items, may have at most %d", k.Got, k.Want)
	case *kind.MinProperties:
		return fmt.Sprintf("has %d members, needs at least %d", k.Got, k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("has %d members, may have at most %d", k.Got, k.Want)
	case *kind.Not:
		return `fits what the schema excludes by "not"`
	case *kind.FalseSchema:
		return "not allowed"
	case nil:
		return "does not fit"
	}
	leaf := jsonschema.ValidationError{ErrorKind: err.ErrorKind}
	return strings.TrimPrefix(leaf.Error(), "at '': ")
}

// list shows values of the schema as JSON.
func list(values []any) string {
	var shown strings.Builder
	for i, value := range values {
		if shown.Len() > maxText {
			break
		}
		if i > 0 {
			shown.WriteString(", ")
		}
		spelled, err := json.Marshal(value)
		if err != nil {
			spelled = []byte("a value of the schema")
		}
		shown.Write(spelled)
	}
	return shown.String()
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// pointer is a JSON Pointer (RFC 6901).
func pointer(location []string) string {
	var path strings.Builder
	for _, member := range location {
		path.WriteByte('/')
		_, _ = escaping.WriteString(&path, member)
	}
	return path.String()
}

func child(path, member string) string { return path + "/" + escaping.Replace(member) }

var escaping = strings.NewReplacer("~", "~0", "/", "~1")

// clip shortens a text to n bytes and says so.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
