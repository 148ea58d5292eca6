// Command languages measures what executors cost, with a handler that does nothing: calls a second and processor time
// for each call, of every SDK and of the generic executor, beside Go's and beside a bare loop over nats.go in the same run.
//
//	make bench-languages
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type options struct {
	root        string
	only        string
	rounds      int
	calls       int
	within      time.Duration
	concurrency int
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "the root of the repository")
	flag.StringVar(&o.only, "only", "", "executors to measure beside Go's, with commas between; all if empty")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each is measured, in turns")
	flag.IntVar(&o.calls, "calls", 20000, "calls of each measurement, at most")
	flag.DurationVar(&o.within, "time", 10*time.Second, "how long a measurement goes on publishing, at most")
	flag.IntVar(&o.concurrency, "concurrency", 64, "how many handlers an executor runs at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "languages:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func (o options) run(ctx context.Context, out io.Writer) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var only []string
	if o.only != "" {
		only = strings.Split(o.only, ",")
	}
	dir, err := os.MkdirTemp("", "callfan-bench-")
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(dir)
		} else {
			err = fmt.Errorf("%w; logs are in %s", err, dir)
		}
	}()
	endpoint, err := serveEndpoint(ctx)
	if err != nil {
		return err
	}
	list, err := subjects(o.root, dir, endpoint, o.concurrency, only)
	if err != nil {
		return err
	}
	server, url, err := startNATS(ctx, o.root, dir)
	if server != nil {
		defer server.stop()
	}
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	d, err := newDispatcher(ctx, url, log)
	if err != nil {
		return err
	}
	defer d.conn.Close()
	b := &bench{options: o, dispatcher: d, server: server, processes: map[string]*process{}, results: map[string]*result{}}
	defer func() {
		for _, p := range b.processes {
			p.stop()
		}
	}()
	env := []string{"NATS_URL=" + url, "BENCH_CONCURRENCY=" + strconv.Itoa(o.concurrency)}
	for _, s := range list {
		if err := b.open(ctx, dir, s, env); err != nil {
			return err
		}
	}
	if err := b.measure(ctx, list); err != nil {
		return err
	}
	return b.report(out, list)
}

// serveEndpoint answers each request at once, for functions that are HTTP endpoints. It runs in this process, so that its
// processor time is not the executor's.
func serveEndpoint(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "ok")
	})}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return "http://" + listener.Addr().String() + "/", nil
}

var errNotRegistered = errors.New("its function is not registered")
