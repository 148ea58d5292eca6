package ops

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"
)

var (
	// ErrNoDeadLetter is what DeadLetters wraps for a number that there is not.
	ErrNoDeadLetter = errors.New("there is no such dead letter")
	// ErrNoReplay is what DeadLetters wraps for a dead letter that cannot be replayed;
	// the error says why and what to do.
	ErrNoReplay = errors.New("no replay")
)

// DeadLetters are the messages of the installation that could not be used. Their
// methods may return ErrNotStarted.
type DeadLetters interface {
	// DeadLetters lists up to limit letters of a function, or of all when it is empty,
	// the newest first, without their bodies.
	DeadLetters(ctx context.Context, function string, limit int) ([]DeadLetter, error)
	// DeadLetter shows one, with its body.
	DeadLetter(ctx context.Context, sequence uint64) (DeadLetter, error)
	DropDeadLetter(ctx context.Context, sequence uint64) error
	// ReplayDeadLetter publishes a refused outcome once more.
	ReplayDeadLetter(ctx context.Context, sequence uint64) error
}

// DeadLetter is a message that could not be used, as the admin API shows it.
type DeadLetter struct {
	Sequence uint64    `json:"sequence"`
	Buried   time.Time `json:"buried_at"`
	// Function is its name, or its token where that does not tell the name.
	Function string `json:"function,omitempty"`
	// Reason is one of a few words, Detail the sentence for people.
	Reason  string `json:"reason"`
	Detail  string `json:"detail,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Size is that of the whole body, in bytes; Truncated says that only its beginning
	// was kept.
	Size      int  `json:"size"`
	Truncated bool `json:"truncated,omitempty"`
	// Body is the message's, in lists left out. One that is no text comes in Base64.
	Body   string `json:"body,omitempty"`
	Base64 []byte `json:"body_base64,omitempty"`
}

// SetBody puts the body where it belongs.
func (d *DeadLetter) SetBody(body []byte) {
	if d.Body, d.Base64 = "", nil; utf8.Valid(body) {
		d.Body = string(body)
	} else {
		d.Base64 = body
	}
}

// Bytes is the body.
func (d *DeadLetter) Bytes() []byte {
	if d.Base64 != nil {
		return d.Base64
	}
	return []byte(d.Body)
}

// DeadLetterList is the answer of GET /v1/dead.
type DeadLetterList struct {
	DeadLetters []DeadLetter `json:"dead_letters"`
}

// DefaultDeadLetters is how many dead letters a list has unless told otherwise, and
// MaxDeadLetters how many at most.
const (
	DefaultDeadLetters = 50
	MaxDeadLetters     = 1000
)

// listDead answers ?function=NAME&limit=N.
func (s *Server) listDead(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	limit, ok := limitOf(w, query, DefaultDeadLetters, MaxDeadLetters)
	if !ok {
		return
	}
	letters, err := s.cfg.Admin.DeadLetters(r.Context(), query.Get("function"), limit)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	write(w, http.StatusOK, DeadLetterList{DeadLetters: append([]DeadLetter{}, letters...)})
}

func (s *Server) showDead(w http.ResponseWriter, r *http.Request) {
	s.withDead(w, r, func(ctx context.Context, sequence uint64) error {
		letter, err := s.cfg.Admin.DeadLetter(ctx, sequence)
		if err == nil {
			write(w, http.StatusOK, letter)
		}
		return err
	})
}

func (s *Server) dropDead(w http.ResponseWriter, r *http.Request) {
	s.withDead(w, r, func(ctx context.Context, sequence uint64) error {
		err := s.cfg.Admin.DropDeadLetter(ctx, sequence)
		if err == nil {
			w.WriteHeader(http.StatusNoContent)
		}
		return err
	})
}

func (s *Server) replayDead(w http.ResponseWriter, r *http.Request) {
	s.withDead(w, r, func(ctx context.Context, sequence uint64) error {
		err := s.cfg.Admin.ReplayDeadLetter(ctx, sequence)
		if err == nil {
			w.WriteHeader(http.StatusNoContent)
		}
		return err
	})
}

// withDead reads the letter's number and answers with what goes wrong.
func (s *Server) withDead(w http.ResponseWriter, r *http.Request, do func(context.Context, uint64) error) {
	text := r.PathValue("seq")
	sequence, err := strconv.ParseUint(text, 10, 64)
	if err != nil || sequence == 0 {
		refuse(w, http.StatusBadRequest, "invalid_sequence", fmt.Sprintf("%q is not the number of a dead letter", text))
		return
	}
	err = do(r.Context(), sequence)
	switch {
	case err == nil:
	case errors.Is(err, ErrNoDeadLetter):
		refuse(w, http.StatusNotFound, "unknown_dead_letter", err.Error())
	case errors.Is(err, ErrNoReplay):
		refuse(w, http.StatusConflict, "no_replay", err.Error())
	default:
		s.fail(w, r, err)
	}
}
