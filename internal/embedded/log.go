package embedded

import (
	"fmt"
	"log/slog"
	"sync"
)

// serverLog passes on what an operator of an embedded server should see, and keeps
// the latest error, which is all that the server says about a failed start.
type serverLog struct {
	log *slog.Logger

	mu  sync.Mutex
	err string
}

func (l *serverLog) keep(format string, v []any) string {
	msg := fmt.Sprintf(format, v...)
	l.mu.Lock()
	l.err = msg
	l.mu.Unlock()
	return msg
}

func (l *serverLog) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == "" {
		return "the server gave no reason"
	}
	return l.err
}

// The methods below make a server.Logger.

func (l *serverLog) Noticef(string, ...any) {}
func (l *serverLog) Debugf(string, ...any)  {}
func (l *serverLog) Tracef(string, ...any)  {}

func (l *serverLog) Warnf(format string, v ...any) {
	l.log.Warn("embedded NATS", "message", fmt.Sprintf(format, v...))
}

func (l *serverLog) Errorf(format string, v ...any) {
	l.log.Error("embedded NATS", "message", l.keep(format, v))
}

// Fatalf does not end the process, as a stand-alone server's log would.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.log.Error("embedded NATS", "message", l.keep(format, v))
}
