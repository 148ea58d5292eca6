package functionfile

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

// File is a file of functions that was read and found right.
type File struct {
	// Pool is the pool that serves the functions.
	Pool string
	// Version is that of the functions; empty where the file has none.
	Version string
	// Functions are in the order of the file, then those of Tools.
	Functions []Function

	servers []mcpServer
}

// Function is one function of a file.
type Function struct {
	// Name is what the model calls it by.
	Name string

	kind    string // exec, http or mcp
	options []executor.Option
	handler executor.Handler
}

// kindMCP is the kind of functions that are tools of MCP servers.
const kindMCP = "mcp"

// IsTool says whether the function is a tool of an MCP server.
func (f Function) IsTool() bool { return f.kind == kindMCP }

// Language is what runs the functions: "exec", "http", "mcp", or several of them such as
// "exec, http".
func (f *File) Language() string {
	var kinds []string
	for _, fn := range f.Functions {
		kinds = append(kinds, fn.kind)
	}
	slices.Sort(kinds)
	return strings.Join(slices.Compact(kinds), ", ")
}

// Add gives the functions to an executor.
func (f *File) Add(ex *executor.Executor) error {
	for _, fn := range f.Functions {
		if err := executor.HandleRaw(ex, fn.Name, fn.handler, fn.options...); err != nil {
			return err
		}
	}
	return nil
}

var poolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Load reads the file, looks up its programs and the environment variables that it
// names, and starts nothing. Its error is an *Error.
func Load(path string) (*File, error) {
	s := source(path)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, s.fault(nil, "the file does not exist; give the path of a functions file")
	case err != nil:
		return nil, s.fault(nil, "the file cannot be read: %v", err)
	}
	root, err := s.parse(text)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, s.fault(nil, "the file's directory is not known: %v", err)
	}
	return loader{source: s, dir: dir, getenv: os.LookupEnv}.file(root)
}

// loader turns the nodes of one file into functions.
type loader struct {
	source
	// dir is the absolute directory of the file, from which relative paths count.
	dir    string
	getenv func(string) (string, bool)
}

func (l loader) file(root ast.Node) (*File, error) {
	entries, err := l.mapping(root, "the file")
	if err != nil {
		return nil, err
	}
	var f File
	var functions, servers ast.Node
	for _, e := range entries {
		switch e.name {
		case "pool":
			if f.Pool, err = l.text(e.value, "pool"); err != nil {
				return nil, err
			}
			if !poolName.MatchString(f.Pool) {
				return nil, l.fault(e.value, "pool is %q; use 1 to 64 letters, digits, underscores and dashes", f.Pool)
			}
		case "version":
			if f.Version, err = l.text(e.value, "version"); err != nil {
				return nil, err
			}
		case "functions":
			functions = e.value
		case "mcp":
			servers = e.value
		default:
			return nil, l.unknownKey(e, "the file", []string{"pool", "version", "functions", "mcp"})
		}
	}
	switch {
	case f.Pool == "":
		return nil, l.fault(nil, "pool is missing; add `pool: NAME`, the name of this deployment")
	case functions == nil && servers == nil:
		return nil, l.fault(nil, "functions is missing; add `functions:` with at least one function, or `mcp:` with at least one server")
	}
	if functions != nil {
		if f.Functions, err = l.functions(functions); err != nil {
			return nil, err
		}
	}
	if servers != nil {
		if f.servers, err = l.mcpServers(servers); err != nil {
			return nil, err
		}
	}
	return &f, nil
}

func (l loader) functions(n ast.Node) ([]Function, error) {
	entries, err := l.mapping(n, "functions")
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, l.fault(n, "functions is empty; add at least one function")
	}
	functions := make([]Function, 0, len(entries))
	for _, e := range entries {
		f, err := l.function(e)
		if err != nil {
			return nil, err
		}
		functions = append(functions, f)
	}
	return functions, nil
}

// schema reads the JSON Schema of the parameters.
func (l loader) schema(n ast.Node, where string) (json.RawMessage, error) {
	if _, err := l.mapping(n, where); err != nil {
		return nil, err
	}
	raw, err := l.appendJSON(nil, n, where)
	if err != nil {
		return nil, err
	}
	if err := (call.Function{Name: "f", Parameters: raw}).Validate(); err != nil {
		return nil, l.fault(n, "%s must be the JSON Schema of an object: write `type: object`", where)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, l.fault(n, "%s is not a JSON Schema: %s cannot be a %s", where, strings.ReplaceAll(mismatch.Field, "schemaWithoutMethods.", ""), mismatch.Value)
		}
		return nil, l.fault(n, "%s is not a JSON Schema: %v", where, err)
	}
	if _, err := schema.Resolve(nil); err != nil {
		return nil, l.fault(n, "%s is not a usable JSON Schema: %v", where, err)
	}
	return raw, nil
}

var variable = regexp.MustCompile(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces ${NAME} by that variable of the environment; $${NAME} stands for
// the text ${NAME}.
func (l loader) expand(n ast.Node, text, where string) (string, error) {
	var missing string
	text = variable.ReplaceAllStringFunc(text, func(m string) string {
		if m[1] == '$' {
			return m[1:]
		}
		name := m[2 : len(m)-1]
		value, ok := l.getenv(name)
		if !ok && missing == "" {
			missing = name
		}
		return value
	})
	if missing != "" {
		return "", l.fault(n, "%s: the environment variable %s is not set; set it before starting the executor", where, missing)
	}
	return text, nil
}

func quoted(name string) string { return string(appendValue(nil, name)) }
