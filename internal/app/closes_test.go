package app

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClosesRunInReverseAndAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c closes
		var order []string
		failed := errors.New("it failed")
		hang := make(chan struct{})
		c.push("first", func(context.Context) error { order = append(order, "first"); return nil })
		c.push("second", func(context.Context) error { <-hang; return nil })
		c.push("third", func(context.Context) error { order = append(order, "third"); return failed })
		start := time.Now()
		err := c.run(8 * time.Second)
		require.Equal(t, 8*time.Second, time.Since(start))
		require.Equal(t, []string{"third", "first"}, order)
		require.ErrorIs(t, err, failed)
		require.EqualError(t, err, "close third: it failed\nclose second: not done within 8s; left behind")
		require.NoError(t, c.run(time.Second), "nothing is closed twice")
		close(hang)
	})
}
