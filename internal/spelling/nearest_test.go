package spelling_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/spelling"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	words := []string{"timeout", "stop-timeout", "exec", "http", "pool"}
	for word, want := range map[string]string{
		"timout": "timeout", "timeouts": "timeout", "stoptimeout": "stop-timeout", "exce": "exec", "htp": "http",
		"description": "", "": "", "pools": "pool",
	} {
		require.Equal(t, want, spelling.Nearest(word, words), word)
	}
}
