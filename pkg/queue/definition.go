package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// maxSuperseded is how many earlier definitions of a function are known as such.
	maxSuperseded = 16
	// maxDifferences is how many differences a refusal names.
	maxDifferences = 3
	// starting is how long an executor may take from registering to its first pull.
	starting = 2 * time.Second
	// listensFor is how long somebody who listens for cancellations counts as there.
	listensFor = 5 * time.Second
)

// superseded is an earlier definition, and a version of executors that declare it.
type superseded struct {
	Version     string `json:"version"`
	Fingerprint string `json:"fingerprint"`
}

func (r record) supersedes(claim record) bool {
	return slices.Contains(r.Superseded, superseded{claim.Version, claim.fingerprint})
}

// replaces says whether a claim with another definition than the one in force takes
// its place (ADR 0020). false without an error means that the claim is accepted all
// the same: its executor is one of an earlier version that is being replaced.
func (r *Registry) replaces(ctx context.Context, token string, have, claim record, who executorInfo) (bool, error) {
	holders, complete := r.presence.others(token, have.fingerprint, who)
	versions := make([]string, 0, len(holders)+1)
	var latest heard
	for _, h := range holders {
		versions = append(versions, h.who.Version)
		if h.at.After(latest.at) {
			latest = h
		}
	}
	if !complete {
		versions = append(versions, have.Version)
	}
	switch same := slices.Contains(versions, claim.Version); {
	case len(versions) == 0: // nobody holds it any more
		return true, nil
	case !same && !have.supersedes(claim): // a new version
		return true, nil
	}
	idle, err := r.idle(ctx, token, have.Pool)
	switch {
	case err != nil:
		return false, err
	case idle && time.Since(latest.at) < starting:
		return false, &RegisterError{Function: claim.Function.Name, Code: CodeUnavailable, Message: "another executor has just registered the function with another definition; ask again soon"}
	case idle:
		return true, nil
	case have.supersedes(claim):
		return false, nil
	}
	return false, &RegisterError{Function: claim.Function.Name, Code: CodeDefinitionConflict, Message: fmt.Sprintf(
		"function %q is served with another definition by %s: %s; give the program whose definition changed another version, or stop the executors with the other definition first",
		claim.Function.Name, describe(latest.who, have, claim.Version), differences(have, claim))}
}

// describe names the executor that a claim is in conflict with.
func describe(who executorInfo, have record, version string) string {
	if who == (executorInfo{}) {
		who = executorInfo{Language: have.Language, Version: version}
	}
	name := strings.TrimSpace("executor " + who.ID)
	kind := strings.TrimSpace(who.Language + " " + cmp.Or(who.Version, "without a version"))
	return fmt.Sprintf("%s (%s)", name, kind)
}

func differences(have, claim record) string {
	lines := claim.Function.Difference(have.Function)
	text := strings.Join(lines[:min(len(lines), maxDifferences)], ", ")
	if more := len(lines) - maxDifferences; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// idle says that no executor serves the function: none of the pool waits for calls,
// and none listens for cancellations, as those that work on calls do.
func (r *Registry) idle(ctx context.Context, token, pool string) (bool, error) {
	if time.Since(r.listening[token]) < listensFor {
		return false, nil
	}
	consumer, err := r.c.js.Consumer(ctx, r.c.names.calls(), poolDurable(pool))
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound):
	case err != nil:
		return false, err
	case consumer.CachedInfo().NumWaiting > 0:
		return false, nil
	}
	// Where nobody listens the server says so at once. Who listens ignores the notice,
	// which names no call, and does not answer.
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err = r.c.nc.RequestWithContext(ctx, r.c.names.cancel(token), []byte(`{}`))
	if errors.Is(err, nats.ErrNoResponders) {
		return true, nil
	}
	r.listening[token] = time.Now()
	return false, nil
}

// replacing is the claim as it takes the place of have: it remembers what it
// supersedes, so that executors that still declare it do not take it back.
func (r *Registry) replacing(token string, have, claim record) record {
	claim.Superseded = slices.DeleteFunc(slices.Clone(have.Superseded), func(s superseded) bool {
		return s.Fingerprint == claim.fingerprint || s.Fingerprint == have.fingerprint
	})
	holders, _ := r.presence.others(token, have.fingerprint, executorInfo{})
	versions := []string{have.Version}
	for _, h := range holders {
		versions = append(versions, h.who.Version)
	}
	slices.Sort(versions)
	for _, version := range slices.Compact(versions) {
		claim.Superseded = append(claim.Superseded, superseded{version, have.fingerprint})
	}
	claim.Superseded = claim.Superseded[max(0, len(claim.Superseded)-maxSuperseded):]
	r.c.log.Info("the definition of a function changes", "function", claim.Function.Name, "pool", claim.Pool,
		"version", claim.Version, "earlier_version", have.Version, "differences", len(claim.Function.Difference(have.Function)))
	return claim
}
