package kvstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/callfan/callfan/pkg/call"
)

func attachedKey(partition int) string { return "a." + strconv.Itoa(partition) }

func encodeSessions(sessions map[string]bool) []byte {
	var e encoder
	e.uint(uint64(len(sessions)))
	for _, session := range slices.Sorted(maps.Keys(sessions)) {
		e.text(session)
	}
	return e.b
}

func decodeSessions(value []byte) (map[string]bool, error) {
	sessions := map[string]bool{}
	if value == nil {
		return sessions, nil
	}
	d := decoder{b: value}
	for range d.count() {
		sessions[d.text()] = true
	}
	return sessions, d.err()
}

// Attach adds watched sessions; see results.Store.
func (s *Store) Attach(ctx context.Context, sessions ...string) error {
	return s.change(ctx, sessions, true)
}

// Detach removes watched sessions; see results.Store.
func (s *Store) Detach(ctx context.Context, sessions ...string) error {
	return s.change(ctx, sessions, false)
}

// change sets whether sessions are watched. A list that needs no change is not
// written, so that its version stays.
func (s *Store) change(ctx context.Context, sessions []string, watched bool) error {
	byPartition := map[int][]string{}
	for _, session := range sessions {
		p := call.Partition(session, s.config.Partitions)
		byPartition[p] = append(byPartition[p], session)
	}
	partitions := slices.Collect(maps.Keys(byPartition))
	return s.each(ctx, len(partitions), func(ctx context.Context, i int) error {
		p := partitions[i]
		return s.swap(ctx, attachedKey(p), func(value []byte, _ int64) ([]byte, error) {
			list, err := decodeSessions(value)
			if err != nil {
				return nil, err
			}
			before := len(list)
			for _, session := range byPartition[p] {
				if watched {
					list[session] = true
				} else {
					delete(list, session)
				}
			}
			if len(list) == before {
				return nil, nil
			}
			return encodeSessions(list), nil
		})
	})
}

// Attached lists the watched sessions of a partition; see results.Store. The
// version has the time of the list as well as its revision, which would begin
// anew with a new bucket.
func (s *Store) Attached(ctx context.Context, partition int, since string) ([]string, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	got, err := s.bucket.get(ctx, attachedKey(partition))
	if err != nil {
		return nil, "", err
	}
	version := "0"
	if got.value != nil {
		version = fmt.Sprintf("%d.%d", got.revision, got.created.UnixNano())
	}
	if version == since {
		return nil, version, nil
	}
	list, err := decodeSessions(got.value)
	if err != nil {
		return nil, "", err
	}
	sessions := make([]string, 0, len(list))
	return slices.AppendSeq(sessions, maps.Keys(list)), version, nil
}
