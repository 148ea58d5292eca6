package sources_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/sources"
)

func TestFileLoad(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want []string
		err  string
	}{
		"empty":          {"", nil, ""},
		"one":            {"sess_1", []string{"sess_1"}, ""},
		"several":        {"# ours\nsess_1\n\n  sess_2  # the second\nsess_1\n\t# end\nsess_3\n", []string{"sess_1", "sess_2", "sess_3"}, ""},
		"windows":        {"\ufeffsess_1\r\nsess_2\r\n", []string{"sess_1", "sess_2"}, ""},
		"hash in id":     {"sess#1\n", []string{"sess#1"}, ""},
		"two on a line":  {"sess_1\nsess_2 sess_3\n", nil, ":2: "},
		"control":        {"\n\nsess\x00_1\n", nil, ":3: "},
		"not UTF-8":      {"sess_1\n\xff\xfe\n", nil, ":2: "},
		"beyond measure": {strings.Repeat("x", 1000), nil, ":1: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "sessions")
			require.NoError(t, os.WriteFile(path, []byte(test.text), 0o600))
			ids, err := sources.File{Path: path}.Load()
			if test.err != "" {
				require.ErrorContains(t, err, path+test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, ids)
		})
	}
	_, err := sources.File{Path: filepath.Join(t.TempDir(), "none")}.Load()
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestFileRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "sessions")
	put := func(text string) {
		next := filepath.Join(dir, "next")
		require.NoError(t, os.WriteFile(next, []byte(text), 0o600))
		require.NoError(t, os.Rename(next, path))
	}
	put("a\nb\n")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		to := &recorder{}
		var log logLines
		var running sync.WaitGroup
		running.Go(func() { sources.File{Path: path, Logger: log.logger()}.Run(ctx, to) })
		look := func() []string {
			time.Sleep(2 * time.Second) //nolint:forbidigo // synctest's clock
			synctest.Wait()
			return to.take()
		}
		require.Equal(t, []string{"attach a b"}, look())
		require.Empty(t, look())
		put("b\nc\n")
		require.Equal(t, []string{"attach c", "detach a"}, look())
		put("b\nno good\n")
		require.Empty(t, look())
		require.Empty(t, look())
		require.Len(t, log.lines(), 3, "a bad file is said once")
		require.Contains(t, log.lines()[2], path+":2: ")
		require.NoError(t, os.Remove(path))
		require.Empty(t, look())
		put("c\n")
		require.Equal(t, []string{"detach b"}, look(), "the list that was in force is the base")
		to.failing(errors.New("the store is away"))
		put("c\nd\n")
		require.Equal(t, []string{"attach d"}, look())
		require.Equal(t, []string{"attach d"}, look())
		to.failing(nil)
		require.Equal(t, []string{"attach d"}, look())
		require.Empty(t, look())
		put("")
		require.Equal(t, []string{"detach c d"}, look())
		cancel()
		running.Wait()
	})
}
