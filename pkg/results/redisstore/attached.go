package redisstore

import (
	"context"

	"github.com/callfan/callfan/pkg/call"
)

// Attach adds watched sessions; see results.Store.
func (s *Store) Attach(ctx context.Context, sessions ...string) error {
	return s.change(ctx, attachScript, sessions)
}

// Detach removes watched sessions; see results.Store.
func (s *Store) Detach(ctx context.Context, sessions ...string) error {
	return s.change(ctx, detachScript, sessions)
}

func (s *Store) change(ctx context.Context, script *script, sessions []string) error {
	byPartition := map[int]*operation{}
	var operations []*operation
	for _, session := range sessions {
		p := call.Partition(session, s.config.Partitions)
		op := byPartition[p]
		if op == nil {
			op = &operation{script: script, keys: []string{s.keys.attached(p), s.keys.version(p)}}
			byPartition[p] = op
			operations = append(operations, op)
		}
		op.args = append(op.args, session)
	}
	return s.run(ctx, operations)
}

// Attached lists the watched sessions of a partition; see results.Store.
func (s *Store) Attached(ctx context.Context, partition int, since string) ([]string, string, error) {
	op := &operation{
		script: attachedScript,
		keys:   []string{s.keys.attached(partition), s.keys.version(partition)},
		args:   []any{since},
	}
	if err := s.run(ctx, []*operation{op}); err != nil {
		return nil, "", err
	}
	parts, ok := op.reply.([]any)
	if !ok || len(parts) == 0 || len(parts) > 2 {
		return nil, "", errReply
	}
	version := text(parts[0])
	if len(parts) == 1 {
		return nil, version, nil
	}
	sessions, err := texts(parts[1])
	return sessions, version, err
}
