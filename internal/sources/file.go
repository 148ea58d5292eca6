package sources

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxIDLength is far beyond the length of any session id.
const maxIDLength = 256

// Roster is told which sessions to watch and which no longer.
type Roster interface {
	// Attach watches sessions; those that are watched already are fine.
	Attach(ctx context.Context, ids ...string) error
	// Detach stops watching sessions; those that are not watched are fine.
	Detach(ctx context.Context, ids ...string) error
}

// File keeps the sessions that are listed in a file attached: one id per line;
// empty lines, and everything from a # at the start of a line or after a space,
// are ignored.
type File struct {
	Path string
	// Interval is how often the file's size and time are looked at. Defaults to 2 s.
	Interval time.Duration
	// Logger hears of changes, and of failures once per change. Defaults to no
	// logging.
	Logger *slog.Logger
}

// Load reads the file. Its errors name the file and the line.
func (f File) Load() ([]string, error) {
	data, err := os.ReadFile(f.Path)
	if err != nil {
		return nil, fmt.Errorf("session file: %w", err)
	}
	var ids []string
	seen := map[string]bool{}
	n := 0
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\ufeff"))) {
		n++
		id, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("session file: %s:%d: %w", f.Path, n, err)
		}
		if id != "" && !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func parseLine(line []byte) (string, error) {
	if !utf8.Valid(line) {
		return "", errors.New("not UTF-8 text; want one session id")
	}
	s := string(line)
	for i := range len(s) {
		if s[i] == '#' && (i == 0 || s[i-1] == ' ' || s[i-1] == '\t') {
			s = s[:i]
			break
		}
	}
	s = strings.TrimSpace(s)
	switch {
	case strings.ContainsFunc(s, unicode.IsSpace):
		return "", fmt.Errorf("%.60q has a space in it; want one session id per line, comments after #", s)
	case strings.ContainsFunc(s, unicode.IsControl):
		return "", fmt.Errorf("%.60q has a control character in it; want one session id", s)
	case len(s) > maxIDLength:
		return "", fmt.Errorf("an id of %d characters; want a session id of at most %d", len(s), maxIDLength)
	}
	return s, nil
}

// Run follows the file until ctx ends. A file that cannot be read or has a bad
// line changes nothing: the list that was read before stays in force. Sessions
// that leave the file while Run is not running stay attached.
//
// Replace the file by renaming a new one over it: one that is written in place
// may be read half.
func (f File) Run(ctx context.Context, to Roster) {
	f.Logger = cmp.Or(f.Logger, slog.New(slog.DiscardHandler))
	var force []string
	var applied os.FileInfo
	failing := ""
	for {
		before, err := os.Stat(f.Path)
		if err != nil {
			err = fmt.Errorf("session file: %w", err)
		} else if !same(applied, before) {
			if force, err = f.apply(ctx, force, to); err == nil {
				applied = before // a change during the reading shows at the next look
			}
		}
		if ctx.Err() != nil {
			return
		}
		failing = f.report(ctx, failing, err)
		if !sleep(ctx, cmp.Or(f.Interval, 2*time.Second)) {
			return
		}
	}
}

// same says whether a look at the file shows what was applied.
func same(applied, now os.FileInfo) bool {
	return applied != nil && os.SameFile(applied, now) &&
		applied.Size() == now.Size() && applied.ModTime().Equal(now.ModTime())
}

// apply brings the list of the file in force and returns what is in force then.
func (f File) apply(ctx context.Context, force []string, to Roster) ([]string, error) {
	ids, err := f.Load()
	if err != nil {
		return force, err
	}
	added, removed := without(ids, force), without(force, ids)
	if len(added) > 0 {
		if err := to.Attach(ctx, added...); err != nil {
			return force, fmt.Errorf("attach sessions: %w", err)
		}
	}
	if len(removed) > 0 {
		if err := to.Detach(ctx, removed...); err != nil {
			return append(slices.Clone(force), added...), fmt.Errorf("detach sessions: %w", err)
		}
	}
	f.Logger.InfoContext(ctx, "session file read", "path", f.Path, "sessions", len(ids), "attached", len(added), "detached", len(removed))
	return ids, nil
}

// without are the elements of a that are not in b.
func without(a, b []string) []string {
	in := make(map[string]bool, len(b))
	for _, id := range b {
		in[id] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(id string) bool { return in[id] })
}

// report logs when what fails changes, and returns what fails now.
func (f File) report(ctx context.Context, before string, err error) (now string) {
	now = kind(err)
	switch {
	case now == before || ctx.Err() != nil:
	case now == "":
		f.Logger.InfoContext(ctx, "session file is good again", "path", f.Path)
	default:
		f.Logger.ErrorContext(ctx, "session file not applied; the list read before stays in force", "error", err)
	}
	return now
}
