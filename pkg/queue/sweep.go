package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/callfan/callfan/pkg/call"
)

// sweepResults removes from the results stream what no partition's consumer takes.
// An executor can name a foreign reply subject in a request and so make the server
// write an answer into this stream under a subject of its choice; in a work queue
// that would stay for ever. (A call cannot get here, since calls carry an expiry and
// this stream takes none.) The first message of each such subject is kept as a dead
// letter.
func (r *Registry) sweepResults(ctx context.Context) error {
	c := r.c
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	stream, err := c.js.Stream(ctx, c.names.results())
	if err != nil {
		return err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return err
	}
	for subject, count := range info.State.Subjects {
		if token, partition, ok := c.names.parseResult(subject); ok && token != "" && partition < c.cfg.Partitions {
			continue
		}
		if err := c.sweepSubject(ctx, stream, subject); err != nil {
			return fmt.Errorf("sweep %s: %w", subject, err)
		}
		r.repaired(RepairOrphanOutcome, int(count)) //nolint:gosec // a count of messages
		c.log.Warn("removed messages that no partition takes from the results stream", "subject", subject, "messages", count)
	}
	return nil
}

func (c *Conn) sweepSubject(ctx context.Context, stream jetstream.Stream, subject string) error {
	first, err := stream.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(subject))
	if errors.Is(err, jetstream.ErrMsgNotFound) { // swept by another dispatcher
		return nil
	}
	if err != nil {
		return err
	}
	letter := call.DeadLetter{Reason: DeadOrphan, Detail: "no partition takes this subject", Subject: subject, Body: first.Data}
	if err := c.Bury(ctx, letter); err != nil {
		return err
	}
	return stream.Purge(ctx, jetstream.WithPurgeSubject(subject))
}
