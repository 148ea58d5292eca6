package demo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLanguagesByName(t *testing.T) {
	t.Parallel()
	list, err := chosen([]string{"python", "go"})
	require.NoError(t, err)
	require.Equal(t, []string{"Python", "Go"}, []string{list[0].title, list[1].title})
	_, err = chosen([]string{"pyhton", "cobol", "go", "go"})
	require.ErrorContains(t, err, `"pyhton" is none of go, python, typescript, java, rust`)
	require.ErrorContains(t, err, "did you mean python?")
	require.ErrorContains(t, err, `"cobol"`)
	require.ErrorContains(t, err, "go is there twice")
	require.ErrorContains(t, Options{Languages: []string{""}}.Validate(), `"" is none of`)
	require.ErrorContains(t, Options{Languages: Languages(), Sessions: 1}.Validate(), "leave out --sessions")
	require.NoError(t, Options{Languages: Languages()}.Validate())
}

func TestLanguagesComeFromACheckout(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	below := filepath.Join(root, "docs", "adr")
	require.NoError(t, os.MkdirAll(below, 0o750))
	_, err := checkout(below)
	require.ErrorIs(t, err, ErrNoCheckout)
	require.ErrorContains(t, err, "make languages")

	require.NoError(t, os.MkdirAll(filepath.Join(root, examples), 0o750))
	found, err := checkout(below)
	require.NoError(t, err)
	require.Equal(t, root, found)
}

func TestLanguagesThatAreNotPrepared(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := func(path string) {
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	file("examples/languages/go/build/greet")
	file("sdk/java/target/classpath")
	list, err := chosen([]string{"go", "python", "java"})
	require.NoError(t, err)
	require.EqualError(t, prepared(root, list),
		"Python is not prepared, sdk/python/.venv/installed is missing; remedy: make language-python, or make languages for all of them\n"+
			"Java is not prepared, examples/languages/java/build/Greet.class is missing; remedy: make language-java, or make languages for all of them")
}

func TestEachLanguageHasItsExample(t *testing.T) {
	t.Parallel()
	for _, l := range languages {
		files, err := os.ReadDir(filepath.Join("../..", examples, l.name))
		require.NoError(t, err)
		require.NotEmpty(t, files)
	}
}
