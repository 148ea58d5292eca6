package mcptools

import "context"

// slots bounds how many calls run at once; nil bounds nothing.
type slots chan struct{}

func newSlots(n int) slots {
	if n <= 0 {
		return nil
	}
	return make(slots, n)
}

// acquire waits for a free slot; the error is the cause of ctx's end.
func (s slots) acquire(ctx context.Context) error {
	if s == nil {
		return nil
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s slots) release() {
	if s != nil {
		<-s
	}
}
