package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// screen is a terminal that knows what the views use: going up and clearing a line.
func screen(output string) []string {
	lines, at := []string{""}, 0
	for len(output) > 0 {
		switch {
		case strings.HasPrefix(output, "\x1b[2K"):
			lines[at] = ""
			output = output[4:]
		case strings.HasPrefix(output, "\x1b["):
			end := strings.IndexByte(output, 'A')
			up := 0
			for _, digit := range output[2:end] {
				up = up*10 + int(digit-'0')
			}
			at -= up
			output = output[end+1:]
		case output[0] == '\n':
			if at++; at == len(lines) {
				lines = append(lines, "")
			}
			output = output[1:]
		default:
			r := []rune(output)[0]
			lines[at] += string(r)
			output = output[len(string(r)):]
		}
	}
	return lines
}

func moved(session, id, function string, to call.State, at time.Duration) step {
	var s step
	s.Key = call.Key{Session: session, Turn: "turn_1", Call: id}
	s.Function, s.To, s.at = function, to, at
	return s
}

func TestTableShowsTheLastStepOfEachCall(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	v := Options{Live: true, Width: 72, Out: &out}.view()
	v.step(moved("sess_0123456789", "call_a", "get_weather", call.Seen, 1500*time.Microsecond))
	v.step(moved("sess_0123456789", "call_b", "get_weather", call.Seen, 2*time.Millisecond))
	v.step(moved("sess_0123456789", "call_a", "get_weather", call.Succeeded, 12*time.Millisecond))
	v.step(moved("sess_0123456789", "call_a", "get_weather", call.Settled, 13*time.Millisecond))
	v.close()
	require.Equal(t, []string{
		"session         call            function      since (ms)  state",
		"sess_0…456789   call_a          get_weather         13.0  settled: the ",
		"sess_0…456789   call_b          get_weather          2.0  claimed, hand",
		"",
	}, screen(out.String()))
}

func TestBarOfALoad(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	v := Options{Sessions: 2, Calls: 5, Rounds: 1, Live: true, Out: &out}.view()
	v.progress(10, 5, 5)
	v.progress(10, 10, 10)
	v.close()
	require.Contains(t, out.String(), "[###############...............] 10 calls: 10 claimed, 5 saved, 5 settled\r")
	require.Contains(t, out.String(), "[##############################] 10 calls: 10 claimed, 10 saved, 10 settled\r")
}

func TestLossAndDoublingAreErrors(t *testing.T) {
	t.Parallel()
	require.NoError(t, Report{Calls: 3, Submitted: 3}.Err())
	require.ErrorContains(t, Report{Lost: 2}.Err(), "2 calls were lost")
	require.ErrorContains(t, Report{Doubled: 1}.Err(), "1 doubled")
}

func TestOptionsThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{Sessions: -1},
		{Sessions: 1, Calls: -1},
		{Sessions: 1, Rounds: -1},
		{Sessions: 1, HandlerMS: -1},
		{Calls: 1},
		{Rounds: 1},
		{HandlerMS: 1},
		{Stall: -1},
		{Concurrency: -1},
	} {
		require.Error(t, o.Validate(), "%+v", o)
	}
	require.NoError(t, Options{Sessions: 2, Calls: 3, Rounds: 4, HandlerMS: 5}.Validate())
}
