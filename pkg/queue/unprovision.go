package queue

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// Unprovision deletes the installation's streams and bucket with all that is in
// them, for installations that were made for a moment. What is not there is not
// missed. No dispatcher or executor of the installation may be running.
func (c *Conn) Unprovision(ctx context.Context) error {
	var errs []error
	for _, stream := range c.streams() {
		if err := c.js.DeleteStream(ctx, stream.Name); !errors.Is(err, jetstream.ErrStreamNotFound) {
			errs = append(errs, err)
		}
	}
	if err := c.js.DeleteKeyValue(ctx, c.names.bucket()); !errors.Is(err, jetstream.ErrBucketNotFound) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
