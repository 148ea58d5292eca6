package functionfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// entry is one key of a mapping.
type entry struct {
	name  string
	key   ast.Node
	value ast.Node
}

// parse reads the one document of a YAML text.
func (s source) parse(text []byte) (ast.Node, error) {
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	var syntax yaml.Error
	switch {
	case errors.As(err, &syntax) && syntax.GetToken() != nil:
		at := syntax.GetToken().Position
		return nil, &Error{File: string(s), Line: at.Line, Column: at.Column, Message: "not valid YAML: " + syntax.GetMessage()}
	case err != nil:
		return nil, s.fault(nil, "not valid YAML: %v", err)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			return nil, s.fault(doc.Body, "the file has several documents; keep one")
		}
		body = doc.Body
	}
	if body == nil {
		return nil, s.fault(nil, "the file is empty; it needs pool and functions")
	}
	return body, nil
}

// plain refuses what makes a file hard to read for people and tools.
func (s source) plain(n ast.Node) (ast.Node, error) {
	switch n := n.(type) {
	case *ast.AnchorNode, *ast.AliasNode:
		return nil, s.fault(n, "anchors and aliases are not supported; write the value out")
	case *ast.TagNode:
		return nil, s.fault(n, "tags are not supported; remove %s", n.Start.Value)
	}
	return n, nil
}

// mapping gives the entries in their order.
func (s source) mapping(n ast.Node, where string) ([]entry, error) {
	n, err := s.plain(n)
	if err != nil {
		return nil, err
	}
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		return nil, s.fault(n, "%s must be a mapping of keys to values, not %s", where, kind(n))
	}
	entries := make([]entry, 0, len(values))
	first := make(map[string]int, len(values))
	for _, v := range values {
		if v.Key.IsMergeKey() {
			return nil, s.fault(v.Key, "merge keys are not supported; write the keys out")
		}
		key, ok := ast.Node(v.Key).(*ast.StringNode)
		if !ok {
			return nil, s.fault(v.Key, "%s: a key must be a text; put %s in quotes", where, v.Key.String())
		}
		if line, twice := first[key.Value]; twice {
			return nil, s.fault(v.Key, "%s has the key %q twice, first on line %d; remove one", where, key.Value, line)
		}
		first[key.Value] = key.Token.Position.Line
		entries = append(entries, entry{name: key.Value, key: v.Key, value: v.Value})
	}
	return entries, nil
}

func (s source) sequence(n ast.Node, where string) ([]ast.Node, error) {
	n, err := s.plain(n)
	if err != nil {
		return nil, err
	}
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil, s.fault(n, "%s must be a list, not %s", where, kind(n))
	}
	return list.Values, nil
}

func (s source) text(n ast.Node, where string) (string, error) {
	n, err := s.plain(n)
	if err != nil {
		return "", err
	}
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return "", s.fault(n, "%s must be a text, not %s; put %s in quotes", where, kind(n), n.String())
	}
	return "", s.fault(n, "%s must be a text, not %s", where, kind(n))
}

func (s source) duration(n ast.Node, where string) (time.Duration, error) {
	const example = "a positive duration with a unit, such as 500ms, 5s or 2m"
	if n.Type() == ast.IntegerType || n.Type() == ast.FloatType {
		return 0, s.fault(n, "%s is %s; use %s", where, n.String(), example)
	}
	text, err := s.text(n, where)
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, s.fault(n, "%s is %q; use %s", where, text, example)
	}
	return d, nil
}

func (s source) number(n ast.Node, where string, least, most float64) (float64, error) {
	n, err := s.plain(n)
	if err != nil {
		return 0, err
	}
	var v float64
	switch n := n.(type) {
	case *ast.FloatNode:
		v = n.Value
	case *ast.IntegerNode:
		switch i := n.Value.(type) {
		case int64:
			v = float64(i)
		case uint64:
			v = float64(i)
		}
	default:
		return 0, s.fault(n, "%s must be a number from %g to %g, not %s", where, least, most, kind(n))
	}
	if !(v >= least && v <= most) {
		return 0, s.fault(n, "%s is %s; use a number from %g to %g", where, n.String(), least, most)
	}
	return v, nil
}

// appendJSON writes the value as JSON, keys in the file's order.
func (s source) appendJSON(dst []byte, n ast.Node, where string) ([]byte, error) {
	n, err := s.plain(n)
	if err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		entries, err := s.mapping(n, where)
		if err != nil {
			return nil, err
		}
		dst = append(dst, '{')
		for i, e := range entries {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendValue(dst, e.name), ':')
			if dst, err = s.appendJSON(dst, e.value, where); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	case *ast.SequenceNode:
		dst = append(dst, '[')
		for i, v := range n.Values {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = s.appendJSON(dst, v, where); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case *ast.StringNode:
		return appendValue(dst, n.Value), nil
	case *ast.LiteralNode:
		return appendValue(dst, n.Value.Value), nil
	case *ast.NullNode:
		return append(dst, "null"...), nil
	case *ast.BoolNode:
		return appendValue(dst, n.Value), nil
	case *ast.IntegerNode:
		return appendValue(dst, n.Value), nil
	case *ast.FloatNode:
		return appendValue(dst, n.Value), nil
	}
	return nil, s.fault(n, "%s: JSON has no %s", where, n.GetToken().Value)
}

func appendValue(dst []byte, v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // scalars always encode
		panic(err)
	}
	return append(dst, bytes.TrimSpace(buf.Bytes())...)
}

// kind names a node for people.
func kind(n ast.Node) string {
	switch n.Type() {
	case ast.MappingType, ast.MappingValueType:
		return "a mapping"
	case ast.SequenceType:
		return "a list"
	case ast.StringType, ast.LiteralType:
		return "a text"
	case ast.IntegerType, ast.FloatType:
		return "a number"
	case ast.BoolType:
		return "true or false"
	case ast.NullType:
		return "empty"
	default:
		return "a " + n.Type().YAMLName()
	}
}
