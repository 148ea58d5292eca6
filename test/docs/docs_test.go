// Package docs holds the test of what the documents promise: links lead somewhere, commands exist, and every direct
// dependency is explained.
package docs

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	external = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
	heading  = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	target   = regexp.MustCompile(`(?m)^([a-zA-Z][a-zA-Z0-9_-]*):`)
	makeCall = regexp.MustCompile(`(?:^|[\s;&(])make((?:[ \t]+[a-zA-Z][a-zA-Z0-9_-]*(?:=\S*)?)+)`)
	goPath   = regexp.MustCompile(`\bgo (?:run|build|install|test|vet)\b[^\n|;&]*?\s\./([a-zA-Z0-9_/-]+)`)
	inline   = regexp.MustCompile("`[^`]+`")
)

// document is one Markdown file, taken apart.
type document struct {
	path  string // below the root of the repository
	prose string // without code
	code  []string
	slugs []string // the anchors of its headings
}

func documents(t *testing.T) []document {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "*.md"))
	require.NoError(t, err)
	protocol, err := filepath.Glob(filepath.Join(root, "protocol/*.md"))
	require.NoError(t, err)
	paths = append(paths, protocol...)
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".md") {
			paths = append(paths, path)
		}
		return err
	}))
	require.NotEmpty(t, paths)
	var all []document
	for _, path := range paths {
		all = append(all, parse(t, path))
	}
	return all
}

func parse(t *testing.T, path string) document {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	doc := document{path: path}
	var prose strings.Builder
	fence := ""
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := lines.Text()
		trimmed := strings.TrimSpace(line)
		switch {
		case fence == "" && (strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")):
			fence = trimmed[:3]
		case fence != "" && strings.HasPrefix(trimmed, fence):
			fence = ""
		case fence != "":
			command, _, _ := strings.Cut(line, " #")
			doc.code = append(doc.code, command)
		default:
			if match := heading.FindStringSubmatch(line); match != nil {
				doc.slugs = append(doc.slugs, slug(match[1]))
			}
			for _, code := range inline.FindAllString(line, -1) {
				doc.code = append(doc.code, strings.Trim(code, "`"))
			}
			prose.WriteString(inline.ReplaceAllString(line, "code") + "\n")
		}
	}
	require.NoError(t, lines.Err())
	doc.prose = prose.String()
	return doc
}

// slug makes the anchor that GitHub makes of a heading.
func slug(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
			return r
		}
		return -1
	}, strings.ToLower(text))
}

func TestRelativeLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, doc := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(doc.prose, -1) {
			if external.MatchString(match[1]) {
				continue
			}
			path, anchor, _ := strings.Cut(match[1], "#")
			linked := doc
			if path != "" {
				file := filepath.Join(filepath.Dir(doc.path), path)
				if _, err := os.Stat(file); err != nil {
					t.Errorf("%s links to %s, which does not exist", doc.path, match[1])
					continue
				}
				if anchor == "" || !strings.HasSuffix(file, ".md") {
					continue
				}
				linked = parse(t, file)
			}
			if anchor != "" && !slices.Contains(linked.slugs, anchor) {
				t.Errorf("%s links to %s, but %s has no such heading; it has %v", doc.path, match[1], linked.path, linked.slugs)
			}
		}
	}
}

func TestMakeTargetsExist(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	var targets []string
	for _, match := range target.FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, match[1])
	}
	require.Contains(t, targets, "test")
	mentioned := 0
	for _, doc := range documents(t) {
		for _, code := range doc.code {
			for _, match := range makeCall.FindAllStringSubmatch(code, -1) {
				for word := range strings.FieldsSeq(match[1]) {
					if strings.Contains(word, "=") {
						continue
					}
					mentioned++
					if !slices.Contains(targets, word) {
						t.Errorf("%s says `make %s`, which the Makefile does not know", doc.path, word)
					}
				}
			}
		}
	}
	require.Positive(t, mentioned, "the documents mention no make target; the test does not see them any more")
}

func TestGoCommandsNamePackagesThatExist(t *testing.T) {
	t.Parallel()
	for _, doc := range documents(t) {
		for _, code := range doc.code {
			for _, match := range goPath.FindAllStringSubmatch(code, -1) {
				path := strings.Trim(match[1], "/")
				if slices.Contains(doc.code, path+"/main.go") {
					continue // the document has it made
				}
				if _, err := os.Stat(filepath.Join(root, path)); err != nil {
					t.Errorf("%s says `%s`, but there is no %s", doc.path, code, path)
				}
			}
		}
	}
}

func TestDirectDependenciesAreExplained(t *testing.T) {
	t.Parallel()
	contributing, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	var explained []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`/ ]+\\.[^`/ ]+/[^` ]+)` \\|").FindAllStringSubmatch(string(contributing), -1) {
		explained = append(explained, match[1])
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	var known []string
	for _, match := range regexp.MustCompile(`(?m)^(?:require )?\s*(\S+\.\S+/\S+) v\S+( // indirect)?$`).FindAllStringSubmatch(string(mod), -1) {
		known = append(known, match[1])
		if match[2] == "" && !slices.Contains(explained, match[1]) {
			t.Errorf("go.mod requires %s, which has no row in the table of dependencies in CONTRIBUTING.md", match[1])
		}
	}
	require.NotEmpty(t, known)
	for _, name := range explained {
		if !slices.Contains(known, name) {
			t.Errorf("CONTRIBUTING.md explains %s, which go.mod does not require", name)
		}
	}
}
