package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/pkg/queue"
)

type counting struct {
	joining
	events []string
}

func (c *counting) Count(event string) { c.events = append(c.events, event) }

// The queue and the metrics know the same repairs, though neither knows the other.
func TestRepairsAreCountedUnderTheirNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{queue.RepairStuckCall, queue.RepairMovedCall, queue.RepairOrphanOutcome},
		[]string{dispatcher.EventStuckCall, dispatcher.EventMovedCall, dispatcher.EventOrphanOutcome})
	observer := &counting{}
	counted(observer)(queue.RepairStuckCall, 2)
	require.Equal(t, []string{"stuck_call", "stuck_call"}, observer.events)
}
