package effects

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALineThatIsBeingWrittenIsLeftOut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f.jsonl")
	require.NoError(t, Append(path, Line{Event: Start, Number: "1"}))
	require.NoError(t, Append(path, Line{Event: Done, Number: "1"}))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text[:len(text)-3], 0o600))
	lines, err := Read(path)
	require.NoError(t, err)
	require.Len(t, lines, 1)
	require.Equal(t, Start, lines[0].Event)
}
