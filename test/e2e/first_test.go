package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/executor"
)

type city struct {
	City string `json:"city"`
}

func handle[In, Out any](t *testing.T, name string, f func(context.Context, In) (Out, error), opts ...executor.Option) func(*executor.Executor) {
	return func(ex *executor.Executor) { require.NoError(t, executor.Handle(ex, name, f, opts...)) }
}

func TestTurnTravels(t *testing.T) {
	t.Parallel()
	for name, kv := range map[string]bool{"redis": false, "kv": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, options{kv: kv, handlers: handle(t, "get_weather", func(_ context.Context, in city) (string, error) {
				return "sunny in " + in.City, nil
			})})
			id := s.session(script("done",
				[]scripted{{Name: "get_weather", Arguments: []byte(`{"city":"Bern"}`), CallID: "a"}, {Name: "get_weather", Arguments: []byte(`{"city":"Rome"}`), CallID: "b"}},
				[]scripted{{Name: "get_weather", Arguments: []byte(`{"city":"Oslo"}`), CallID: "c"}},
			), "get_weather")
			s.idle(id)
			got := s.answers(id)
			require.Len(t, got, 3)
			require.Equal(t, `"sunny in Bern"`, string(got["a"].Output))
			require.Equal(t, `"sunny in Rome"`, string(got["b"].Output))
			require.Equal(t, `"sunny in Oslo"`, string(got["c"].Output))
			s.settled(id)
			s.clean()
			stats := s.sim.Stats()
			require.Zero(t, stats.DuplicateSubmissions)
			require.EqualValues(t, 3, stats.ResultsAccepted)
		})
	}
}
