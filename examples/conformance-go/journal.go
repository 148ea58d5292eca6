package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/callfan/callfan/pkg/executor"
)

// journal is the event log, which several processes write.
type journal struct{ file *os.File }

func (j journal) log(event string, c executor.Call) {
	line, err := json.Marshal(map[string]any{
		"event": event, "function": c.Function, "call_id": c.Key.Call, "attempt": c.Attempt,
		"idempotency_key": c.IdempotencyKey, "at_ms": time.Now().UnixMilli(), "pid": os.Getpid(),
	})
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err)
	}
}

// around logs the begin and the end of a handler.
func (j journal) around(next executor.Handler) executor.Handler {
	return func(ctx context.Context, c executor.Call) (executor.Output, error) {
		j.log("start", c)
		defer func() {
			if ctx.Err() != nil {
				j.log("cancelled", c)
			} else {
				j.log("end", c)
			}
		}()
		return next(ctx, c)
	}
}
