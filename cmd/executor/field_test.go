//go:build unix

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// A case from the field: SIGTERM while a handler of 20 s runs. It is finished within the
// default stop timeout, 25 s; with less it ends as the function's policy says, and never
// as if it had not been started.
func TestField_SIGTERMWithAHandlerOfTwentySeconds(t *testing.T) {
	t.Parallel()
	const verify = `verify: {exec: {command: ["false"]}}, `
	for name, tt := range map[string]struct {
		policy string
		flags  []string
		most   time.Duration // from the signal to the end
		kind   call.Kind
		cause  string
		left   uint64
	}{
		"finishes":          {most: 25 * time.Second, kind: call.Success},
		"fail":              {flags: []string{"--stop-timeout", "1s"}, most: 15 * time.Second, kind: call.Failure, cause: call.ReasonUnknownOutcome},
		"rerun":             {policy: "effects: none, ", flags: []string{"--stop-timeout", "1s"}, most: 15 * time.Second, kind: call.Released},
		"verify":            {policy: verify, flags: []string{"--stop-timeout", "1s"}, most: 15 * time.Second, left: 1},
		"park":              {policy: "on_uncertain: park, ", flags: []string{"--stop-timeout", "1s"}, most: 15 * time.Second, kind: call.Uncertain},
		"park, with verify": {policy: "on_uncertain: park, " + verify, flags: []string{"--stop-timeout", "1s"}, most: 15 * time.Second, left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := install(t)
			dir, stop := i.execute(fmt.Sprintf(`pool: tools
functions:
  slow: {%sexec: {command: [sh, -c, "touch started; sleep 20; echo done"]}}
`, tt.policy), tt.flags...)
			i.start(dir)
			took := stop()
			t.Logf("ended %s after the signal", took.Round(time.Millisecond))
			require.Less(t, took, tt.most)
			require.Eventually(t, func() bool { return i.left() == tt.left }, patience, 10*time.Millisecond, "calls are left in the stream, or none is")
			if tt.left > 0 { // for the next executor, which finds out
				require.Empty(t, i.outcomes)
				return
			}
			o := i.outcome()
			require.Equal(t, tt.kind, o.Kind)
			require.Equal(t, tt.cause, o.Cause)
			if tt.kind == call.Success {
				require.Equal(t, `"done\n"`, string(o.Output))
				require.Greater(t, took, 10*time.Second, "the handler was running")
			}
		})
	}
}
