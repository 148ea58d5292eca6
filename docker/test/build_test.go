package test

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/stretchr/testify/require"
)

var buildAll = flag.Bool("all", false, "build every program, not only the executor; the first time takes minutes")

// The build stage's own COPY and RUN lines, in a clean directory, make a static program that knows its version, and the
// same bytes again elsewhere. The programs are built by the same lines but for their names, so one of them shows it for all;
// for the others the clean directory has every package that they need.
func TestProgramsAreBuiltInACleanDirectory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Fatal("images are built on Linux; remedy: run this test there")
	}
	lines := map[string]string{}
	for name, all := range programs(t) {
		for _, command := range all[0].Commands {
			lines[name] += strings.ReplaceAll(fmt.Sprint(command), "/"+name+" ", "/NAME ") + "\n"
		}
		lines[name] = strings.ReplaceAll(strings.ReplaceAll(lines[name], "/out/"+name, "/out/NAME"), "./cmd/"+name, "./cmd/NAME")
		dir := t.TempDir()
		if name != "executor" && !*buildAll {
			runStage(t, all[0], dir, "go list -deps ./cmd/"+name)
			continue
		}
		runStage(t, all[0], dir, "")
		checkProgram(t, filepath.Join(dir, "out", name))
		again := t.TempDir()
		runStage(t, all[0], again, "")
		first, err := os.ReadFile(filepath.Join(dir, "out", name))
		require.NoError(t, err)
		second, err := os.ReadFile(filepath.Join(again, "out", name))
		require.NoError(t, err)
		require.True(t, bytes.Equal(first, second), "two builds differ")
	}
	require.Contains(t, lines["executor"], "go build")
	require.Equal(t, lines["executor"], lines["dispatcher"])
	require.Equal(t, lines["executor"], lines["callfan"])
}

func checkProgram(t *testing.T, program string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, "--version").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "1.2.3\n", string(out))
	executable, err := elf.Open(program)
	require.NoError(t, err)
	require.Nil(t, executable.Section(".interp"), "it would need a loader, and scratch has none")
	require.NoError(t, executable.Close())
	info, err := buildinfo.ReadFile(program)
	require.NoError(t, err)
	require.NotEmpty(t, info.Deps, "what an SBOM is made of")
}

// runStage does what a build does, with dir in place of the image's root, and something else in place of its last command
// unless that is empty.
func runStage(t *testing.T, stage instructions.Stage, dir, instead string) {
	t.Helper()
	given := map[string]string{"TARGETOS": runtime.GOOS, "TARGETARCH": runtime.GOARCH, "VERSION": "1.2.3"}
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GOCACHE=" + goenv(t, "GOCACHE"), "GOMODCACHE=" + goenv(t, "GOMODCACHE"),
		"GOPROXY=" + goenv(t, "GOPROXY"), "GOTOOLCHAIN=local", "GOWORK=off",
	}
	work := dir
	for i, command := range stage.Commands {
		switch c := command.(type) {
		case *instructions.ArgCommand:
			for _, arg := range c.Args {
				require.Contains(t, given, arg.Key)
				env = append(env, arg.Key+"="+given[arg.Key])
			}
		case *instructions.WorkdirCommand:
			work = filepath.Join(dir, c.Path)
			require.NoError(t, os.MkdirAll(work, 0o755))
		case *instructions.CopyCommand:
			for _, source := range c.SourcePaths {
				copyInto(t, source, filepath.Join(work, c.DestPath), strings.HasSuffix(c.DestPath, "/"))
			}
		case *instructions.RunCommand:
			line := strings.ReplaceAll(strings.Join(c.CmdLine, " "), " /out/", " "+dir+"/out/")
			if i == len(stage.Commands)-1 && instead != "" {
				line = instead
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", line)
			cmd.Dir, cmd.Env = work, env
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s: %s", line, out)
		default:
			require.Fail(t, "the test does not know the instruction", "%s", c.Name())
		}
	}
}

func goenv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// copyInto copies a file or a directory of the build's context, without what .dockerignore keeps out.
func copyInto(t *testing.T, source, to string, into bool) {
	t.Helper()
	matcher := ignored(t)
	from := filepath.Join(root, source)
	require.NoError(t, filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inContext, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if out, err := matcher.MatchesOrParentMatches(inContext); err != nil || out {
			return err
		}
		below, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, below)
		if into {
			target = filepath.Join(to, filepath.Base(source))
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o644)
	}))
}
