package executor_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
)

func init() { executor.PlayExecutor = playExecutor }

// charging handles the function charge, whose effect is a line in ledger. Its
// handler calls entered before and after the effect.
func charging(ledger string, entered func(ctx context.Context, effected bool), verify executor.VerifyHandler) func(*executor.Executor) error {
	return func(ex *executor.Executor) error {
		var opts []executor.Option
		if verify != nil {
			opts = append(opts, executor.WithVerify(verify))
		}
		return executor.HandleRaw(ex, "charge", func(ctx context.Context, c executor.Call) (executor.Output, error) {
			entered(ctx, false)
			f, err := os.OpenFile(ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return executor.Output{}, err
			}
			defer f.Close()
			if _, err := io.WriteString(f, c.IdempotencyKey+"\n"); err != nil {
				return executor.Output{}, err
			}
			entered(ctx, true)
			return executor.Text("receipt " + c.IdempotencyKey), nil
		}, opts...)
	}
}

// playExecutor is the main function of an executor that is going to be killed: it
// stands still before or after its effect, and says so.
func playExecutor(url, ledger, stand string) error {
	ex, err := executor.New(executor.Config{Pool: "tools", Concurrency: 1, Queue: queue.Config{URL: url}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	err = charging(ledger, func(ctx context.Context, effected bool) {
		if effected == (stand == "after") {
			fmt.Println("standing")
			<-ctx.Done()
		}
	}, func(context.Context, executor.Call) (executor.Verdict, error) {
		return executor.CannotTell("killed one asked"), nil
	})(ex)
	if err != nil {
		return err
	}
	return ex.Run(context.Background())
}

// An executor process is killed in the middle of a call, and another one verifies it.
func TestNATSKilledExecutorsCallIsVerified(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stand   string
		verify  func(ledger string) executor.VerifyHandler
		effects int
		kind    call.Kind
		reason  string
		failed  string
		policy  call.OnUncertain // the dispatcher's
	}{
		"done":        {stand: "after", verify: lookIntoLedger, effects: 1, kind: call.Success},
		"not done":    {stand: "before", verify: lookIntoLedger, effects: 1, kind: call.Success},
		"cannot tell": {stand: "after", verify: cannotTell, effects: 1, kind: call.Uncertain, reason: "the ledger is away"},
		"no handler":  {stand: "after", effects: 1, kind: call.Failure, failed: call.ReasonUnknownOutcome},
		"park, done":  {stand: "after", policy: call.UncertainPark, verify: lookIntoLedger, effects: 1, kind: call.Success},
		"park":        {stand: "after", policy: call.UncertainPark, effects: 1, kind: call.Uncertain, reason: "it may have run before, and this executor has no verify handler for the function"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := install(t)
			ledger := filepath.Join(t.TempDir(), "ledger")
			kill := startPlayed(t, i.server, ledger, tt.stand)
			d := newCall("charge", 1, `{}`)
			d.OnUncertain = tt.policy
			i.dispatch(d)
			kill()

			var verify executor.VerifyHandler
			if tt.verify != nil {
				verify = tt.verify(ledger)
			}
			i.run(executor.Config{}, charging(ledger, func(context.Context, bool) {}, verify))
			o := i.await(1)[0]
			require.Equal(t, tt.kind, o.Kind)
			require.Equal(t, tt.reason, o.Reason)
			require.Equal(t, tt.failed, o.Cause)
			if tt.kind == call.Success {
				require.Equal(t, `"receipt `+d.IdempotencyKey()+`"`, string(o.Output))
			}
			i.awaitEmpty()
			lines, err := os.ReadFile(ledger)
			require.NoError(t, err)
			require.Equal(t, strings.Repeat(d.IdempotencyKey()+"\n", tt.effects), string(lines))
		})
	}
}

func lookIntoLedger(ledger string) executor.VerifyHandler {
	return func(_ context.Context, c executor.Call) (executor.Verdict, error) {
		lines, err := os.ReadFile(ledger)
		switch {
		case os.IsNotExist(err):
			return executor.NotDone(), nil
		case err != nil:
			return executor.Verdict{}, err
		case strings.Contains(string(lines), c.IdempotencyKey+"\n"):
			return executor.Done("receipt " + c.IdempotencyKey), nil
		}
		return executor.NotDone(), nil
	}
}

func cannotTell(string) executor.VerifyHandler {
	return func(context.Context, executor.Call) (executor.Verdict, error) {
		return executor.CannotTell("the ledger is away"), nil
	}
}

// startPlayed starts an executor process that stands still in its first call. kill
// waits for that and kills it.
func startPlayed(t *testing.T, server *testservers.NATSServer, ledger, stand string) (kill func()) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "EXECUTOR_PLAY="+strings.Join([]string{server.URL(), ledger, stand}, " "), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	stands := make(chan string, 1)
	go func() {
		line := make([]byte, len("standing"))
		n, _ := io.ReadFull(out, line)
		stands <- string(line[:n])
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return func() {
		t.Helper()
		select {
		case said := <-stands:
			require.Equal(t, "standing", said)
		case <-time.After(20 * time.Second):
			t.Fatal("the executor process did not enter its function")
		}
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
	}
}
