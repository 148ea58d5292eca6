//go:build unix

package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAProcessThatEndsByItselfIsStartedAgain(t *testing.T) {
	t.Parallel()
	p := &process{name: "sleeper", path: "/bin/sleep", args: []string{"0.1"}, dir: t.TempDir()}
	require.NoError(t, p.start())
	exits := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.gaveUp
	}
	require.Eventually(t, func() bool { return exits() >= 2 }, 20*time.Second, 10*time.Millisecond)
	p.kill()
	require.False(t, p.alive())
}

func TestAProcessThatIsKilledStaysDown(t *testing.T) {
	t.Parallel()
	p := &process{name: "sleeper", path: "/bin/sleep", args: []string{"600"}, dir: t.TempDir()}
	require.NoError(t, p.start())
	p.kill()
	require.Never(t, p.alive, restartAfter*3/2, 50*time.Millisecond)
	require.Zero(t, p.gaveUp)
}
