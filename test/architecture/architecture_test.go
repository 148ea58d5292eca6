// Package architecture holds the test of the import directions: which package may know which. The linter checks what one
// file imports; this test also checks what is linked in through other packages.
package architecture

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/callfan/callfan"

// listed is what go list tells of a package, without its tests.
type listed struct {
	ImportPath string
	Name       string
	Imports    []string // direct
	Deps       []string // direct and through others
}

// tree holds the packages of this module by their path inside it, "pkg/call" for example.
type tree map[string]listed

func load(t *testing.T) tree {
	t.Helper()
	// -e, because a package that does not compile is the business of the compiler.
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Imports,Deps", module+"/...")
	output, err := cmd.Output()
	var stderr []byte
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		stderr = exit.Stderr
	}
	require.NoError(t, err, "go list: %s", stderr)
	packages := tree{}
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		packages[inside(p.ImportPath)] = p
	}
	require.NotEmpty(t, packages)
	return packages
}

// inside shortens an import path of this module to the path inside it; others stay as they are.
func inside(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
}

// under returns the packages at path and below it, sorted.
func (packages tree) under(path string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(packages)), func(name string) bool { return !within(name, path) })
}

// within tells whether importPath is root or lies below it.
func within(importPath, root string) bool {
	return importPath == root || strings.HasPrefix(importPath, root+"/")
}

// isStd tells a package of the standard library: its first element has no dot.
func isStd(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// matching returns the imports that lie at or below one of the roots; roots in this module are written inside it.
func matching(imports, roots []string) []string {
	var found []string
	for _, imported := range imports {
		if slices.ContainsFunc(roots, func(root string) bool { return within(inside(imported), root) }) {
			found = append(found, inside(imported))
		}
	}
	return found
}

func TestWithinRespectsPathElements(t *testing.T) {
	t.Parallel()
	require.True(t, within("pkg/results/kvstore", "pkg/results"))
	require.False(t, within("pkg/resultset", "pkg/results"))
	require.True(t, isStd("encoding/json"))
	require.False(t, isStd("github.com/nats-io/nats.go"))
	require.Equal(t, []string{"pkg/queue"}, matching([]string{"fmt", module + "/pkg/queue"}, []string{"pkg/queue", "github.com/redis"}))
}

func TestRulesNamePackagesThatExist(t *testing.T) {
	t.Parallel()
	packages := load(t)
	for _, name := range slices.Sorted(maps.Keys(named())) {
		if len(packages.under(name)) > 0 {
			continue
		}
		if slices.Contains(planned, name) {
			t.Logf("%s is planned and does not exist yet", name)
			continue
		}
		t.Errorf("a rule names %s, which does not exist; remedy: correct the rule in rules_test.go", name)
	}
}

func TestOnlyAllowedImports(t *testing.T) {
	t.Parallel()
	packages := load(t)
	for root, allowed := range onlyImports {
		for _, name := range packages.under(root) {
			if isTestSupport(name) {
				continue
			}
			for _, imported := range packages[name].Imports {
				own := within(inside(imported), root) && !slices.Contains(adapters, inside(imported))
				if !isStd(imported) && !own && !slices.Contains(allowed, inside(imported)) {
					t.Errorf("%s imports %s; it may import the standard library, itself and %v", name, inside(imported), allowed)
				}
			}
		}
	}
}

func TestNothingForbiddenIsLinked(t *testing.T) {
	t.Parallel()
	packages := load(t)
	for _, rule := range neverLinks {
		for _, root := range rule.packages {
			for _, name := range packages.under(root) {
				if isTestSupport(name) {
					continue
				}
				if found := matching(packages[name].Deps, rule.links); len(found) > 0 {
					t.Errorf("%s links %v: %s", name, found, rule.because)
				}
			}
		}
	}
}

func TestAdaptersDoNotKnowEachOther(t *testing.T) {
	t.Parallel()
	packages := load(t)
	for _, adapter := range adapters {
		others := slices.DeleteFunc(slices.Clone(adapters), func(other string) bool { return other == adapter })
		for _, name := range packages.under(adapter) {
			if found := matching(packages[name].Deps, others); len(found) > 0 {
				t.Errorf("%s links %v: adapters never import each other; remedy: let the consumer declare an interface, and wire both in cmd or internal/app",
					name, found)
			}
		}
	}
}

func TestOnlyWiringSeesTwoAdapters(t *testing.T) {
	t.Parallel()
	packages := load(t)
	for name, p := range packages {
		if slices.ContainsFunc(wiring, func(root string) bool { return within(name, root) }) {
			continue
		}
		if found := matching(p.Imports, adapters); len(found) > 1 {
			t.Errorf("%s imports %v: only %v see two adapters at once", name, found, wiring)
		}
	}
}

func TestNATSServerIsLinkedIntoOneProgram(t *testing.T) {
	t.Parallel()
	for name, p := range load(t) {
		if p.Name != "main" || slices.Contains(embedsNATSServer, name) {
			continue
		}
		if found := matching(p.Deps, []string{"github.com/nats-io/nats-server"}); len(found) > 0 {
			t.Errorf("%s links %s: only %v carry the server; daemons stay lean", name, found[0], embedsNATSServer)
		}
	}
}

func TestTestSupportStaysOutOfProduction(t *testing.T) {
	t.Parallel()
	for name, p := range load(t) {
		if isTestSupport(name) {
			continue
		}
		if found := matching(p.Imports, testOnly); len(found) > 0 {
			t.Errorf("%s imports %v outside of its tests", name, found)
		}
		for _, imported := range p.Imports {
			if within(imported, module) && isTestSupport(inside(imported)) {
				t.Errorf("%s imports the test support %s outside of its tests", name, inside(imported))
			}
		}
	}
}

// isTestSupport tells a package that exists for tests: its last element ends in "test", or it starts test servers.
func isTestSupport(name string) bool {
	return strings.HasSuffix(name, "test") || name == "internal/testservers"
}
