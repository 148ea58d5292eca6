package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// closes is what has to be closed, in the order in which it was opened.
type closes struct {
	list []namedClose
}

type namedClose struct {
	name  string
	close func(context.Context) error
}

// push adds something that was opened.
func (c *closes) push(name string, f func(context.Context) error) {
	c.list = append(c.list, namedClose{name, f})
}

// run closes everything, what was opened last first, and is done after each has had
// its time; what takes longer is left behind and named in the error.
func (c *closes) run(each time.Duration) error {
	var errs []error
	for _, n := range slices.Backward(c.list) {
		ctx, cancel := context.WithTimeout(context.Background(), each)
		result := make(chan error, 1)
		go func() { result <- n.close(ctx) }()
		select {
		case err := <-result:
			if err != nil {
				errs = append(errs, fmt.Errorf("close %s: %w", n.name, err))
			}
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("close %s: not done within %v; left behind", n.name, each))
		}
		cancel()
	}
	c.list = nil
	return errors.Join(errs...)
}
