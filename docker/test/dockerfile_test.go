// Package test checks the Dockerfiles without an engine: their form, and that what they run works in a clean directory.
package test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// programs are the Dockerfiles of callfan's own programs, by name.
func programs(t *testing.T) map[string][]instructions.Stage { return stages(t, "../*.Dockerfile", 3) }

// examples are those of executors on each SDK.
func examples(t *testing.T) map[string][]instructions.Stage {
	return stages(t, "../examples/*.Dockerfile", 4)
}

func stages(t *testing.T, pattern string, count int) map[string][]instructions.Stage {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.Len(t, paths, count)
	found := map[string][]instructions.Stage{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		parsed, err := parser.Parse(bytes.NewReader(text))
		require.NoError(t, err, path)
		require.Empty(t, parsed.Warnings, path)
		all, global, err := instructions.Parse(parsed.AST, nil)
		require.NoError(t, err, path)
		require.Empty(t, global, path)
		found[strings.TrimSuffix(filepath.Base(path), ".Dockerfile")] = all
	}
	return found
}

// last is the last instruction of a kind in a stage.
func last[T any](t *testing.T, stage instructions.Stage) (found T) {
	t.Helper()
	ok := false
	for _, command := range stage.Commands {
		if c, is := command.(T); is {
			found, ok = c, true
		}
	}
	require.True(t, ok, "%T is missing in the stage from %s", found, stage.BaseName)
	return found
}

var (
	// pinned is an image with a version of at least two numbers.
	pinned = regexp.MustCompile(`^[a-z0-9./-]+:\d+\.\d+[\w.-]*$`)
	secret = regexp.MustCompile(`(?i)secret|token|passw|_key|credential`)
)

func TestDockerfiles(t *testing.T) {
	t.Parallel()
	for _, group := range []map[string][]instructions.Stage{programs(t), examples(t)} {
		for name, all := range group {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				require.Len(t, all, 2, "what is needed to build stays out of the image")
				for _, stage := range all {
					if stage.BaseName != "scratch" {
						require.Regexp(t, pinned, stage.BaseName)
						require.NotContains(t, stage.BaseName, "latest")
					}
					for _, command := range stage.Commands {
						require.NotRegexp(t, secret, strings.Join(names(command), " "))
						switch c := command.(type) {
						case *instructions.AddCommand:
							require.Fail(t, "ADD fetches and unpacks; use COPY")
						case *instructions.CopyCommand:
							require.NotContains(t, c.SourcePaths, ".", "name what is copied")
						}
					}
				}
				final := all[1]
				require.Equal(t, "65532:65532", last[*instructions.UserCommand](t, final).User, "as in the chart's podSecurityContext")
				require.False(t, last[*instructions.EntrypointCommand](t, final).PrependShell, "signals must reach the program")
				for _, command := range final.Commands {
					_, runs := command.(*instructions.RunCommand)
					require.False(t, runs, "RUN in the last stage would run for each platform")
				}
				labels := map[string]string{}
				for _, pair := range last[*instructions.LabelCommand](t, final).Labels {
					labels[pair.Key] = pair.Value
				}
				for _, label := range []string{"title", "description", "source", "licenses"} {
					require.NotEmpty(t, labels["org.opencontainers.image."+label])
				}
			})
		}
	}
}

// names are those that an instruction gives to values.
func names(command instructions.Command) (found []string) {
	switch c := command.(type) {
	case *instructions.ArgCommand:
		for _, arg := range c.Args {
			found = append(found, arg.Key)
		}
	case *instructions.EnvCommand:
		for _, pair := range c.Env {
			found = append(found, pair.Key)
		}
	}
	return found
}

// A program's image is built on the machine's own platform for another, by the Go that docker/go.mod names, and knows its version.
func TestProgramsAreBuiltForEveryPlatform(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	version := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(string(text))[1]
	chart, err := os.ReadFile(filepath.Join(root, "helm/callfan/values.yaml"))
	require.NoError(t, err)
	for name, all := range programs(t) {
		require.Equal(t, "golang:"+version+"-bookworm", all[0].BaseName)
		require.Equal(t, "$BUILDPLATFORM", all[0].Platform)
		build := strings.Join(last[*instructions.RunCommand](t, all[0]).CmdLine, " ")
		for _, part := range []string{"CGO_ENABLED=0", "GOOS=$TARGETOS", "GOARCH=$TARGETARCH", "-trimpath", "-buildid=", "release=$VERSION"} {
			require.Contains(t, build, part, name)
		}
		require.Equal(t, []string{"/" + name}, last[*instructions.EntrypointCommand](t, all[1]).CmdLine)
		require.Contains(t, string(chart), "repository: callfan/"+name+"\n", "an image that the chart uses")
	}
}

// ignored says what .dockerignore keeps out of a build.
func ignored(t *testing.T) *patternmatcher.PatternMatcher {
	t.Helper()
	file, err := os.Open(filepath.Join(root, ".dockerignore"))
	require.NoError(t, err)
	defer file.Close()
	patterns, err := ignorefile.ReadAll(file)
	require.NoError(t, err)
	matcher, err := patternmatcher.New(patterns)
	require.NoError(t, err)
	return matcher
}

func TestNothingElseGoesIntoABuild(t *testing.T) {
	t.Parallel()
	matcher := ignored(t)
	for path, out := range map[string]bool{
		".env": true, "openai.key": true, ".git/config": true, "cmd/dispatcher/.env": true, "sdk/python/.venv/pyvenv.cfg": true, "docs/protocol.md": true,
		"bin/callfan": true, "sdk/typescript/node_modules/zod/package.json": true, "cmd/callfan/main_test.go": true,
		"go.mod": false, "cmd/callfan/main.go": false, "sdk/typescript/package-lock.json": false, "examples/rust/src/main.rs": false,
	} {
		is, err := matcher.MatchesOrParentMatches(path)
		require.NoError(t, err)
		require.Equal(t, out, is, path)
	}
	// What is copied is there and is let in.
	for _, group := range []map[string][]instructions.Stage{programs(t), examples(t)} {
		for name, all := range group {
			for _, stage := range all {
				for _, command := range stage.Commands {
					c, is := command.(*instructions.CopyCommand)
					if !is || c.From != "" {
						continue
					}
					for _, source := range c.SourcePaths {
						_, err := os.Stat(filepath.Join(root, source))
						require.NoError(t, err, name)
						out, err := matcher.MatchesOrParentMatches(source)
						require.NoError(t, err)
						require.False(t, out, "%s copies %s", name, source)
					}
				}
			}
		}
	}
}
