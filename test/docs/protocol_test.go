package docs

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/queue"
)

const protocolPage = "docs/protocol.md"

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

func parseGo(t *testing.T, name string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	return file
}

// constants are the texts of the file's constants that pick names or their types pick.
func constants(t *testing.T, name string, pick func(constant, kind string) bool) map[string]string {
	t.Helper()
	found := map[string]string{}
	ast.Inspect(parseGo(t, name), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != len(spec.Names) {
			return true
		}
		kind, _ := spec.Type.(*ast.Ident)
		for i, constant := range spec.Names {
			if text, ok := literal(spec.Values[i]); ok && pick(constant.Name, identifier(kind)) {
				found[constant.Name] = text
			}
		}
		return true
	})
	require.NotEmpty(t, found, "%s has no such constants any more; mend this test", name)
	return found
}

func identifier(i *ast.Ident) string {
	if i == nil {
		return ""
	}
	return i.Name
}

func literal(e ast.Expr) (string, bool) {
	basic, ok := e.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(basic.Value)
	return text, err == nil
}

// jsonNames are the JSON names of the members of the file's struct types; no types
// means all.
func jsonNames(t *testing.T, name string, types ...string) []string {
	t.Helper()
	var found []string
	ast.Inspect(parseGo(t, name), func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		structure, ok := spec.Type.(*ast.StructType)
		if !ok || len(types) > 0 && !slices.Contains(types, spec.Name.Name) {
			return true
		}
		for _, field := range structure.Fields.List {
			if field.Tag == nil {
				continue
			}
			tag, err := strconv.Unquote(field.Tag.Value)
			require.NoError(t, err)
			member, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
			found = append(found, member)
		}
		return true
	})
	require.NotEmpty(t, found, "%s has no such structs any more; mend this test", name)
	return found
}

// The page on the protocol says something about every word that the code puts on the wire.
func TestTheProtocolPageKnowsEveryWord(t *testing.T) {
	t.Parallel()
	page := readPage(t, protocolPage)
	says := func(what, word string) {
		t.Helper()
		if !strings.Contains(page, "`"+word+"`") && !strings.Contains(page, `"`+word+`"`) {
			t.Errorf("%s does not mention the %s %q", protocolPage, what, word)
		}
	}
	for _, header := range constants(t, "pkg/queue/headers.go", func(name, _ string) bool { return strings.HasPrefix(name, "header") }) {
		says("header", header)
	}
	for _, code := range constants(t, "pkg/queue/errors.go", func(name, _ string) bool { return strings.HasPrefix(name, "Code") }) {
		says("code", code)
	}
	for file, kind := range map[string]string{
		"pkg/call/outcome.go": "Kind", "pkg/call/delivered.go": "Standing", "pkg/call/policy.go": "OnUncertain",
	} {
		for _, word := range constants(t, file, func(_, k string) bool { return k == kind }) {
			says(kind, word)
		}
	}
	for _, effects := range constants(t, "pkg/call/policy.go", func(_, kind string) bool { return kind == "Effects" }) {
		says("class of effects", effects)
	}
	for _, member := range jsonNames(t, "pkg/queue/binding.go") {
		says("member of a registration", member)
	}
	for _, member := range jsonNames(t, "pkg/queue/advisorycall.go", "termReason") {
		says("member of a +TERM", member)
	}
	for _, member := range append(jsonNames(t, "pkg/call/function.go"), jsonNames(t, "pkg/call/policy.go")...) {
		says("member of a definition", member)
	}
	for _, file := range []string{"outcomedecoder.go", "outcomes.go", "callmessage.go", "cancel.go"} {
		for _, member := range cases(t, "pkg/queue/"+file) {
			says("member", member)
		}
	}
	for _, text := range []string{call.CrashedText, call.UnknownOutcomeText} {
		says("text", text)
	}
	for _, cause := range causes(t) {
		says("cause", cause)
	}
}

// cases are the texts of the file's switches: the members that it reads.
func cases(t *testing.T, name string) []string {
	t.Helper()
	var found []string
	ast.Inspect(parseGo(t, name), func(n ast.Node) bool {
		if clause, ok := n.(*ast.CaseClause); ok {
			for _, value := range clause.List {
				if text, ok := literal(value); ok && text != "" {
					found = append(found, text)
				}
			}
		}
		return true
	})
	require.NotEmpty(t, found, "%s has no such switch any more; mend this test", name)
	return found
}

// causes are those of failures that the executor decides.
func causes(t *testing.T) []string {
	t.Helper()
	reasons := constants(t, "pkg/call/result.go", func(name, _ string) bool { return strings.HasPrefix(name, "Reason") })
	paths, err := filepath.Glob(filepath.Join(root, "pkg/executor/*.go"))
	require.NoError(t, err)
	var found []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		name, err := filepath.Rel(root, path)
		require.NoError(t, err)
		ast.Inspect(parseGo(t, name), func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && reasons[selector.Sel.Name] != "" {
				found = append(found, reasons[selector.Sel.Name])
			}
			return true
		})
	}
	require.Contains(t, found, "timeout")
	return found
}

func TestTheProtocolPageKnowsEverySubject(t *testing.T) {
	t.Parallel()
	page := readPage(t, protocolPage)
	subjects := 0
	ast.Inspect(parseGo(t, "pkg/queue/subjects.go"), func(n ast.Node) bool {
		operation, ok := n.(*ast.BinaryExpr)
		if !ok || operation.Op != token.ADD {
			return true
		}
		if part, ok := literal(operation.Y); ok && strings.HasPrefix(part, ".") && len(part) > 1 {
			subjects++
			if strings.HasSuffix(part, ".") {
				part += "<token>"
			}
			if !strings.Contains(page, "`fn"+part) {
				t.Errorf("%s does not mention the subject fn%s", protocolPage, part)
			}
		}
		return true
	})
	require.GreaterOrEqual(t, subjects, 6, "the test does not see the subjects any more")
}

// The permissions on the page are those that callfan hands out, and with which pkg/queue tests an executor.
func TestTheProtocolPageListsThePermissions(t *testing.T) {
	t.Parallel()
	page := readPage(t, protocolPage)
	granted, err := queue.ExecutorPermissions(queue.Config{}, "weather", []string{"get_weather"})
	require.NoError(t, err)
	rows := 0
	for operation, subjects := range map[string][]string{"publish": granted.Publish, "subscribe": granted.Subscribe} {
		for _, subject := range subjects {
			require.Contains(t, page, "| "+operation+" | `"+subject+"` |", "%s does not list the permission", protocolPage)
			rows++
		}
	}
	_, section, _ := strings.Cut(page, "\n## Permissions\n")
	section, _, _ = strings.Cut(section, "\n## ")
	listed := regexp.MustCompile("(?m)^\\| (?:publish|subscribe) \\| `").FindAllString(section, -1)
	require.Len(t, listed, rows, "%s lists more permissions than an executor has", protocolPage)
}

func TestTheProtocolPageEncodesNames(t *testing.T) {
	t.Parallel()
	_, table, found := strings.Cut(readPage(t, protocolPage), "| name | token |\n|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	rows := regexp.MustCompile("(?m)^\\| (?:(\\d+) times )?`([^`]+)` \\| `([^`]+)` \\|$").FindAllStringSubmatch(table, -1)
	require.Len(t, rows, strings.Count(table, "\n")+1)
	for _, row := range rows {
		times, err := strconv.Atoi(row[1])
		if row[1] == "" {
			times, err = 1, nil
		}
		require.NoError(t, err)
		require.Equal(t, call.Token(strings.Repeat(row[2], times)), row[3])
	}
}

// Examples on the page are marked with the name of their schema, and fit it.
func TestTheProtocolPageShowsValidPayloads(t *testing.T) {
	t.Parallel()
	page := readPage(t, protocolPage)
	c := jsonschema.NewCompiler()
	paths, err := filepath.Glob(filepath.Join(root, "protocol/schema/*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	id := func(name string) string { return "urn:callfan:protocol:1:" + name }
	shown := map[string]int{}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err, path)
		require.NoError(t, c.AddResource(id(name), doc))
		shown[name] = 0
	}
	for _, example := range regexp.MustCompile("(?ms)^```json ([a-z-]+)\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		name := example[1]
		schema, err := c.Compile(id(name))
		require.NoError(t, err, name)
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(example[2]))
		require.NoError(t, err, example[2])
		require.NoError(t, schema.Validate(value), example[2])
		shown[name]++
	}
	for name, times := range shown {
		require.True(t, times > 0 || name == "function", "%s shows no example of %s", protocolPage, name)
	}
	require.Equal(t, strings.Count(page, "\n```json"), strings.Count(page, "\n```json "), "each example names its schema")
}

// Each index of fixtures is explained where they are, and named where it matters.
func TestFixturesAreExplained(t *testing.T) {
	t.Parallel()
	readme, page := readPage(t, "protocol/README.md"), readPage(t, protocolPage)
	paths, err := filepath.Glob(filepath.Join(root, "protocol/fixtures/*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		name := filepath.Base(path)
		require.Contains(t, readme, "`"+name+"`", "protocol/README.md does not explain it")
		require.Contains(t, page, "`"+name+"`", "%s does not name it", protocolPage)
	}
	schemas, err := filepath.Glob(filepath.Join(root, "protocol/schema/*.json"))
	require.NoError(t, err)
	for _, path := range schemas {
		require.Contains(t, readme, "`"+filepath.Base(path)+"`", "protocol/README.md does not explain it")
	}
}
