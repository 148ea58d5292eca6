package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/callfan/callfan/internal/ask"
	"github.com/callfan/callfan/internal/config"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
)

// checkFunction is the function that a check registers, and the name of its pool.
const checkFunction = "callfan_check"

type checkCommand struct {
	askAgent    `embed:""`
	config.NATS `embed:"" group:"NATS"`

	Timeout time.Duration `help:"How long the call may take." default:"2m"`
}

type checkArguments struct {
	Token string `json:"token" description:"Any text. It comes back."`
}

// Run makes a call travel: it registers a function, asks an agent that has only this
// one, and compares what the agent was given with what the function was asked.
func (c *checkCommand) Run(env environment) error {
	ctx, cancel := context.WithTimeoutCause(env.ctx, c.Timeout, fmt.Errorf("the check took longer than %v", c.Timeout))
	defer cancel()
	dispatcher, err := c.client()
	if err != nil {
		return err
	}
	ex, err := c.executor(env)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	var failed error
	go func() {
		defer close(ended)
		failed = ex.Run(serving)
	}()
	defer func() { stop(); <-ended }()
	if err := awaitReady(ctx, ex, ended); err != nil {
		stop()
		<-ended
		err = errors.Join(failed, err)
		return fmt.Errorf("the executor of the check is not served: %w", err)
	}
	api, err := c.openAI()
	if err != nil {
		return err
	}
	token, started := rand.Text(), time.Now()
	answer, err := ask.Ask(ctx, api, ask.Question{
		Model: c.Model, Functions: ex.Functions(),
		Text:  fmt.Sprintf(`Call %s with {"token": %q} exactly once, and say what it returned.`, checkFunction, token),
		Watch: func(ctx context.Context, session string) error { return dispatcher.Watch(ctx, session) },
	})
	if answer.Session != "" {
		defer func() { _ = dispatcher.Unwatch(context.WithoutCancel(ctx), answer.Session) }()
	}
	if err != nil {
		return err
	}
	if err := checked(answer, token); err != nil {
		return fmt.Errorf("session %s: %w", answer.Session, err)
	}
	fmt.Fprintf(env.stdout, "A call went from the API over the dispatcher and NATS to an executor, and its result back to the agent, in %v.\n",
		time.Since(started).Round(time.Millisecond))
	return nil
}

func (c *checkCommand) executor(env environment) (*executor.Executor, error) {
	n := c.NATS
	ex, err := executor.New(executor.Config{
		Queue: queue.Config{
			URL: n.NATSURL.Reveal(), Prefix: n.Prefix, CredsFile: n.NATSCreds, NKeyFile: n.NATSNKey,
			User: n.NATSUser, Password: n.NATSPassword.Reveal(), Token: n.NATSToken.Reveal(),
			CAFile: n.NATSCA, CertFile: n.NATSCert, KeyFile: n.NATSKey, InboxPrefix: n.NATSInboxPrefix, APIPrefix: n.NATSAPIPrefix,
		},
		Pool: checkFunction, Concurrency: 1, StopTimeout: time.Second, Logger: env.logging.Logger(env.stderr),
	})
	if err != nil {
		return nil, err
	}
	// Any process of the pool may get the call, of another check too: what it answers depends on the call alone.
	return ex, executor.Handle(ex, checkFunction, func(_ context.Context, in checkArguments) (string, error) {
		return checkResult(in.Token), nil
	}, executor.WithDescription("Checks that callfan works. It has no effects."), executor.WithEffects(call.EffectsNone))
}

func checkResult(token string) string { return "checked " + token }

// awaitReady waits until the executor is registered, unless it ends.
func awaitReady(ctx context.Context, ex *executor.Executor, ended <-chan struct{}) error {
	for {
		err := ex.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return err
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// checked says what is wrong with the agent's turn.
func checked(answer ask.Answer, token string) error {
	if len(answer.Calls) == 0 {
		return fmt.Errorf("the agent called nothing, and said %q", answer.Text)
	}
	for _, f := range answer.Calls {
		var result string
		if err := json.Unmarshal(f.Result, &result); err != nil || f.Failed || result != checkResult(token) {
			return fmt.Errorf("%s(%s) came back as %s, and %q was expected", f.Function, f.Arguments, f.Result, checkResult(token))
		}
	}
	return nil
}
