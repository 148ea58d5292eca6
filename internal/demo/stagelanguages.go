package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/callfan/callfan/internal/ask"
	"github.com/callfan/callfan/internal/ops"
)

// greetings are the turn that all chosen languages answer.
func greetings(names []string) conversation {
	calls := make([]string, len(names))
	for i, name := range names {
		calls[i] = fmt.Sprintf(`{"name":%q,"arguments":{"name":"world"}}`, language{name: name}.function())
	}
	return conversation{
		question: `{"rounds":[[` + strings.Join(calls, ",") + `]],"say":"They say:","say_results":true}`,
		shown:    "Greet the world in all your languages, at once.",
	}
}

// openLanguages starts an executor in each chosen language and waits until all have
// registered.
func (s *stage) openLanguages(ctx context.Context) error {
	list, err := chosen(s.Languages)
	if err != nil {
		return err
	}
	began := time.Now()
	for _, l := range list {
		p, err := startLanguage(s.root, l, []string{"NATS_URL=" + s.natsURL, "CALLFAN_PREFIX=" + s.prefix})
		if err != nil {
			return err
		}
		s.languages = append(s.languages, p)
		s.onClose(p.stop)
	}
	// Asked in a row, they would be waited for in a row.
	s.onClose(func() error {
		for _, p := range s.languages {
			p.terminate()
		}
		return nil
	})
	ready := map[string]bool{}
	var ended error
	err = s.until(ctx, "the registration of all executors", func() bool {
		for _, p := range s.languages {
			ended = cmp.Or(ended, p.ended())
			if _, ok := s.executorOf(ctx, p.language); ok && !ready[p.name] {
				ready[p.name] = true
				s.say("%7.1f ms  the executor in %s is ready\n", ms(time.Since(began)), p.title)
			}
		}
		return ended != nil || len(ready) == len(list)
	})
	if err != nil {
		for _, p := range s.languages {
			if !ready[p.name] {
				err = fmt.Errorf("%w; the log of the executor in %s:\n%s", err, p.title, p.log.text())
			}
		}
	}
	s.say("\n")
	return errors.Join(err, ended)
}

// say prints unless the report is all that is wanted.
func (s *stage) say(format string, args ...any) {
	if !s.JSON {
		fmt.Fprintf(s.Out, format, args...)
	}
}

// executorOf is the executor that has registered the function of a language.
func (s *stage) executorOf(ctx context.Context, l language) (ops.Executor, bool) {
	functions, err := s.app.Functions(ctx)
	if err != nil {
		return ops.Executor{}, false
	}
	for _, f := range functions {
		if f.Name == l.function() && len(f.Executors) > 0 {
			return f.Executors[0], true
		}
	}
	return ops.Executor{}, false
}

// languagesAnswered shows which language answered what, and counts those that did. The error
// is about those that did not.
func (s *stage) languagesAnswered(ctx context.Context, calls []ask.Call) (int, error) {
	answered := map[string]ask.Call{}
	for _, c := range calls {
		answered[c.Function] = c
	}
	s.say("\n%-12s%-30s  %9s  %s\n", "language", "executor", "took (ms)", "answer")
	count := 0
	var errs []error
	for _, p := range s.languages {
		c, ok := answered[p.function()]
		executor, _ := s.executorOf(ctx, p.language)
		if !ok || c.Failed || c.Result == nil {
			errs = append(errs, fmt.Errorf("the executor in %s did not answer: %s\n%s", p.title, c.Result, p.log.text()))
			continue
		}
		if executor.Language != p.name {
			errs = append(errs, fmt.Errorf("%s was answered in %q instead of %s", p.function(), executor.Language, p.name))
			continue
		}
		count++
		var text string
		if json.Unmarshal(c.Result, &text) != nil {
			text = string(c.Result)
		}
		s.say("%-12s%-30s  %9.1f  %s\n", executor.Language, executor.ID, ms(s.journal.answerTime(p.function())), text)
	}
	return count, errors.Join(errs...)
}

// findCheckout finds what the languages need, before anything is started.
func (s *stage) findCheckout(context.Context) error {
	if len(s.Languages) == 0 {
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if s.root, err = checkout(dir); err != nil {
		return err
	}
	list, err := chosen(s.Languages)
	if err != nil {
		return err
	}
	return prepared(s.root, list)
}
