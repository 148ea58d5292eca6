package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// File is the flag that names the YAML file with settings. When it is given, the
// file is read for every setting that neither a flag nor a variable sets.
type File string

// BeforeResolve reads the file and has the parser ask it.
func (f File) BeforeResolve(ctx *kong.Context, path *kong.Path) error {
	name, ok := ctx.FlagValue(path.Flag).(File)
	if !ok || name == "" {
		return nil
	}
	entries, err := readFile(string(name))
	if err != nil {
		return err
	}
	if err := checkKeys(entries, ctx.Flags(), ctx.Model.AllFlags(false)); err != nil {
		return err
	}
	ctx.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if environment(flag) {
			return nil, nil // kong would prefer the file
		}
		e, ok := entries[flag.Name]
		if !ok {
			return nil, nil
		}
		return e.resolve(flag)
	}))
	return nil
}

// environment says whether a variable of the flag is set.
func environment(flag *kong.Flag) bool {
	for _, name := range flag.Tag.Envs {
		if _, ok := os.LookupEnv(name); ok {
			return true
		}
	}
	return false
}

// entry is one key of the file with its value: the text of a scalar, or the texts
// of a list.
type entry struct {
	key   string
	value any
	at    string // file:line
	order int
}

// resolve is the value in the form that the parser takes. It tries it, so that the
// error can name the line.
func (e entry) resolve(flag *kong.Flag) (any, error) {
	value := e.value
	if list, ok := value.([]any); ok {
		if !flag.IsSlice() {
			return nil, fmt.Errorf("%s: takes one value, not a list", e.at)
		}
		if len(list) > 0 { // as on the command line: the errors are the better ones
			texts := make([]string, len(list))
			for i := range list {
				texts[i] = fmt.Sprint(list[i])
			}
			value = kong.JoinEscaped(texts, flag.Tag.Sep)
		}
	}
	scratch := reflect.New(flag.Target.Type()).Elem()
	err := flag.Mapper.Decode(&kong.DecodeContext{
		Value: flag.Value, Scan: kong.Scan().PushTyped(value, kong.FlagValueToken),
	}, scratch)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.at, err)
	}
	return value, nil
}

func readFile(name string) (map[string]entry, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("the configuration file cannot be read: %w", err)
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		if syntax, ok := errors.AsType[*yaml.SyntaxError](err); ok {
			return nil, fmt.Errorf("%s: %s", position(name, syntax.Token.Position.Line), syntax.Message)
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	entries := map[string]entry{}
	for i, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType {
			continue
		}
		at := position(name, doc.Body.GetToken().Position.Line)
		if i > 0 {
			return nil, fmt.Errorf("%s: a second document; keep one", at)
		}
		pairs, ok := doc.Body.(ast.MapNode)
		if !ok {
			return nil, fmt.Errorf("%s: want settings of the form \"key: value\"", at)
		}
		for it := pairs.MapRange(); it.Next(); {
			key := it.Key().GetToken()
			e := entry{key: key.Value, at: position(name, key.Position.Line), order: len(entries)}
			if e.value, err = plain(it.Value()); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", e.at, e.key, err)
			}
			entries[e.key] = e
		}
	}
	return entries, nil
}

// plain is the text of a value as it would stand on the command line.
func plain(node ast.Node) (any, error) {
	switch n := node.(type) {
	case *ast.SequenceNode:
		list := make([]any, 0, len(n.Values))
		for _, element := range n.Values {
			v, err := plain(element)
			if _, nested := v.([]any); err == nil && nested {
				err = errors.New("a list within a list")
			}
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case *ast.NullNode:
		return nil, errors.New("the value is missing; remove the key to use the default")
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, nil
	default:
		return nil, errors.New("want a single value or a list of values")
	}
}

func position(name string, line int) string { return fmt.Sprintf("%s:%d", name, line) }
