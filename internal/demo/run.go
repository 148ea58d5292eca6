package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/callfan/callfan/internal/agents"
	"github.com/callfan/callfan/internal/app"
	"github.com/callfan/callfan/internal/ask"
	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/internal/embedded"
	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/internal/runstore"
	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/queue"
	"github.com/callfan/callfan/pkg/results/kvstore"
)

// partitions of the demo's installation: enough to use two cores, few to start with.
const partitions = 8

// Run brings everything up, asks the questions or makes the load, waits for the
// answers and takes everything down. The error is about the demo itself; calls that
// were lost or doubled are in the report (Report.Err).
func Run(ctx context.Context, o Options) (report Report, err error) {
	if err := o.Validate(); err != nil {
		return Report{}, err
	}
	o = o.withDefaults()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &stage{Options: o, prefix: "fn"}
	if o.NATSURL != "" || o.Redis != nil {
		// A prefix of its own keeps the demo apart from whatever else is there.
		s.prefix = "demo-" + uuid.NewString()[:8]
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, step := range []func(context.Context) error{s.findCheckout, s.openSimulator, s.openNATS, s.openDispatcher, s.openExecutors} {
		if err := step(ctx); err != nil {
			return Report{}, err
		}
	}
	return s.play(ctx)
}

// stage is the demo's running parts.
type stage struct {
	Options
	prefix  string
	sim     *simulator.Simulator
	baseURL string
	natsURL string
	app     *app.Dispatcher
	journal *journal
	view    view
	worker  *workerProcess
	// root is the checkout, and languages the executors from it, with Options.Languages.
	root      string
	languages []*languageProcess
	// runs are those that were started, with Options.Responses.
	runs   []runs.Run
	closes []func() error
}

func (s *stage) onClose(f func() error) { s.closes = append(s.closes, f) }

// close takes the parts down in the reverse order.
func (s *stage) close() error {
	var errs []error
	for _, closeIt := range slices.Backward(s.closes) {
		errs = append(errs, closeIt())
	}
	return errors.Join(errs...)
}

func (s *stage) openSimulator(context.Context) (err error) {
	s.sim, err = simulator.New(simulator.Config{Profile: s.Profile, Faults: s.Faults, Logger: s.Logger})
	if err != nil {
		return err
	}
	s.onClose(func() error { s.sim.Close(); return nil })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s.sim.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	s.onClose(server.Close)
	s.baseURL = "http://" + listener.Addr().String() + "/v1"
	return nil
}

func (s *stage) openNATS(context.Context) error {
	if s.NATSURL != "" {
		s.natsURL = s.NATSURL
		return nil
	}
	dir, err := os.MkdirTemp("", "callfan-demo-")
	if err != nil {
		return err
	}
	s.onClose(func() error { return os.RemoveAll(dir) })
	server, err := embedded.Start(embedded.Config{Dir: dir, Listen: "127.0.0.1:0", Logger: s.Logger})
	if err != nil {
		return err
	}
	s.onClose(func() error { server.Stop(); return nil })
	s.natsURL = server.URL()
	return nil
}

func (s *stage) openDispatcher(ctx context.Context) error {
	s.view = s.Options.view()
	s.journal = newJournal(s.view.step)
	opts := app.Options{
		Name:       "demo",
		API:        agents.Config{BaseURL: s.baseURL},
		Queue:      queue.Config{URL: s.natsURL, Prefix: s.prefix, Partitions: partitions},
		Dispatcher: dispatcher.Config{StopTimeout: 5 * time.Second},
		KV:         kvstore.Config{Bucket: s.bucket()},
		Observer:   s.journal,
		Logger:     s.Logger,
	}
	if s.Redis != nil {
		own := *s.Redis
		own.Prefix = s.prefix
		opts.Redis = &own
	}
	d, err := app.New(opts)
	if err != nil {
		return err
	}
	s.app = d
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	s.onClose(func() error {
		cancel()
		return errors.Join(<-ended, s.leaveNothing())
	})
	select {
	case <-d.Started():
		return nil
	case err := <-ended:
		ended <- nil // told already
		return fmt.Errorf("the dispatcher does not start: %w", err)
	case <-time.After(s.Stall):
		return fmt.Errorf("the dispatcher is not ready after %v: %w", s.Stall, d.Ready(ctx))
	}
}

// bucket keeps the results when Redis does not.
func (s *stage) bucket() string { return s.prefix + "-results" }

// leaveNothing leaves real servers as they were.
func (s *stage) leaveNothing() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if s.NATSURL != "" {
		err = s.removeStreams(ctx)
	}
	if s.Redis != nil {
		err = errors.Join(err, s.removeKeys(ctx))
	}
	return err
}

func (s *stage) removeKeys(ctx context.Context) error {
	options, err := redis.ParseURL(s.Redis.URL)
	if err != nil {
		return nil // the store said so when it was opened
	}
	client := redis.NewClient(options)
	defer client.Close()
	keys := client.Scan(ctx, 0, s.prefix+":*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := client.Unlink(ctx, keys.Val()).Err(); err != nil {
			return fmt.Errorf("the demo's keys are not removed: %w", err)
		}
	}
	return keys.Err()
}

func (s *stage) removeStreams(ctx context.Context) error {
	conn, err := queue.Connect(ctx, queue.Config{URL: s.natsURL, Prefix: s.prefix, Logger: s.Logger})
	if err != nil {
		return err
	}
	defer conn.Close()
	err = conn.JetStream().DeleteKeyValue(ctx, s.bucket())
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		err = nil
	}
	return errors.Join(err, runstore.Remove(ctx, conn.JetStream(), runstore.Config{Prefix: s.prefix}), conn.Unprovision(ctx))
}

func (s *stage) openExecutors(ctx context.Context) error {
	if len(s.Languages) > 0 {
		return s.openLanguages(ctx)
	}
	return s.openWorker(ctx)
}

func (s *stage) openWorker(ctx context.Context) (err error) {
	s.worker, err = startWorker(s.WorkerCommand, []string{
		"NATS_URL=" + s.natsURL, "CALLFAN_PREFIX=" + s.prefix, fmt.Sprint("CALLFAN_CONCURRENCY=", s.Concurrency),
	})
	if err != nil {
		return err
	}
	s.onClose(func() error {
		if s.worker != nil {
			_, err := s.worker.stop()
			return err
		}
		return nil
	})
	return s.until(ctx, "the executor's registration", func() bool {
		functions, err := s.app.Functions(ctx)
		return err == nil && len(functions) == 4
	})
}

// until polls for a condition, no longer than a stall may last.
func (s *stage) until(ctx context.Context, what string, done func() bool) error {
	limit := time.Now().Add(s.Stall)
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for !done() {
		if time.Now().After(limit) {
			return fmt.Errorf("%s did not come within %v", what, s.Stall)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-poll.C:
		}
	}
	return nil
}

// play asks everything, waits for the last answer and counts.
func (s *stage) play(ctx context.Context) (Report, error) {
	client := openai.NewClient(option.WithBaseURL(s.baseURL), option.WithAPIKey("none"))
	list := s.conversations()
	began := time.Now()
	s.journal.began = began
	ids, err := s.ask(ctx, client, list)
	if err != nil {
		return Report{}, err
	}
	stalled := s.await(ctx, len(list))
	if stalled != nil {
		_, _, err := s.lookAtRuns(ctx, true)
		stalled = errors.Join(stalled, err)
	}
	wall := time.Since(began)
	s.view.close()
	if ctx.Err() != nil {
		return Report{}, context.Cause(ctx)
	}
	answered := 0
	var unanswered error
	if s.Sessions == 0 {
		for i, id := range ids {
			calls, answer, err := ask.Read(ctx, client, id)
			if err != nil {
				return Report{}, err
			}
			if len(s.Languages) > 0 {
				answered, unanswered = s.languagesAnswered(ctx, calls)
			}
			s.say("\nuser:  %s\nagent: %s\n", list[i].shown, answer)
		}
	}
	unanswered = errors.Join(unanswered, s.sayRuns(list))
	counted, err := s.counted()
	report := newReport(s.sim.Stats(), counted, wall)
	report.Languages = answered
	if s.Responses {
		s.runsReport(&report)
	}
	if s.JSON {
		return report, errors.Join(err, stalled, unanswered, report.writeJSON(s.Out))
	}
	report.writeText(s.Out)
	return report, errors.Join(err, stalled, unanswered)
}

// counted is how often handlers ran. Executors in other languages do not count: theirs
// are the results that came.
func (s *stage) counted() (WorkerReport, error) {
	if s.worker == nil {
		_, saved, _ := s.journal.progress()
		return WorkerReport{Executed: saved, Calls: saved}, nil
	}
	counted, err := s.worker.stop()
	s.worker = nil
	return counted, err
}

// ask makes the sessions and, with Options.Responses, the runs at the same time.
func (s *stage) ask(ctx context.Context, client openai.Client, list []conversation) (ids []string, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		ids, err = s.create(ctx, client, list)
		return err
	})
	if s.Responses {
		group.Go(func() error { return s.startRuns(ctx, list) })
	}
	return ids, group.Wait()
}

const model = "gpt-6-astra"

// create makes the sessions through the official SDK and has them watched.
func (s *stage) create(ctx context.Context, client openai.Client, list []conversation) ([]string, error) {
	functions, err := s.functions(ctx)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(list))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i, c := range list {
		group.Go(func() error {
			body, err := ask.Body(model, c.question, functions)
			if err != nil {
				return err
			}
			session, err := client.Beta.Agents.Sessions.New(ctx, openai.BetaAgentSessionNewParams{},
				option.WithRequestBody("application/json", body))
			if err != nil {
				return fmt.Errorf("the session was not created: %w", err)
			}
			ids[i] = session.ID
			return s.app.Attach(ctx, session.ID)
		})
	}
	return ids, group.Wait()
}

func (s *stage) functions(ctx context.Context) ([]call.Function, error) {
	registered, err := s.app.Functions(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]call.Function, len(registered))
	for i, f := range registered {
		list[i] = f.Function
	}
	return list, nil
}

// await waits until all turns and runs have ended and every call is settled, as long
// as something happens every now and then.
func (s *stage) await(ctx context.Context, turns int) error {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	moved, last := time.Now(), [5]int{}
	for {
		stats := s.sim.Stats()
		claimed, saved, settled := s.journal.progress()
		s.view.progress(claimed, saved, settled)
		ended := stats.TurnsCompleted + stats.TurnsFailed + stats.TurnsCancelled
		runsEnded, rounds, err := s.lookAtRuns(ctx, false)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if ended >= int64(turns) && runsEnded == len(s.runs) && int64(settled) >= stats.Calls+int64(s.runCalls()) {
			return nil
		}
		if now := [5]int{int(ended), saved, settled, runsEnded, rounds}; now != last {
			moved, last = time.Now(), now
		}
		if time.Since(moved) > s.Stall {
			return fmt.Errorf("nothing has happened for %v; giving up", s.Stall)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-poll.C:
		}
	}
}
