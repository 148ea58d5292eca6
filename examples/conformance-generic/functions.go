package main

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// request is a call as a program or an endpoint gets it.
type request struct {
	Function, Session, Turn, Call, Key, Traceparent string
	Attempt                                         int
	Deadline                                        time.Time
	Verify                                          bool
	Arguments                                       []byte
}

// answer is what becomes of it.
type answer struct {
	status status
	text   string
	after  time.Duration
}

type status int

const (
	success status = iota
	noValue
	failure
	invalid // arguments that do not fit
	technical
	notDone
	crashed
	ended // the executor has to end
)

// seconds is the wait as Retry-After has it, in whole seconds.
func (a answer) seconds() string {
	return strconv.Itoa(int(math.Ceil(a.after.Seconds())))
}

func say(text string) answer { return answer{text: text} }

// arguments are those of all functions.
type arguments struct {
	Text    string `json:"text"`
	MS      int64  `json:"ms"`
	AfterMS int64  `json:"after_ms"`
	OkAt    int    `json:"ok_at"`
	Count   *int64 `json:"count"`
	Bytes   int    `json:"bytes"`
	Unless  string `json:"unless"`
	Verdict string `json:"verdict"`
}

// perform runs the function, with its events.
func (r request) perform(ctx context.Context) answer {
	if r.Verify {
		r.log("verify")
		return r.verify()
	}
	r.log("start")
	a := r.run(ctx)
	if ctx.Err() != nil {
		r.log("cancelled")
	} else {
		r.log("end")
	}
	return a
}

func (r request) run(ctx context.Context) answer {
	var in arguments
	switch r.Function {
	default: // echo and its twins take anything
		return say(string(r.Arguments))
	case "fail", "retry", "sleep", "key", "text", "parts", "object", "nothing", "crash", "typed", "block", "stuck", "exit", "large", "pay", "pay_blind", "pay_park":
	}
	if err := json.Unmarshal(r.Arguments, &in); err != nil {
		return answer{status: invalid, text: err.Error()}
	}
	switch r.Function {
	case "fail":
		return answer{status: failure, text: in.Text}
	case "retry":
		if r.Attempt < in.OkAt {
			return answer{status: technical, text: "not yet", after: time.Duration(in.AfterMS) * time.Millisecond}
		}
		return say("ok")
	case "sleep":
		wait(ctx, in.MS)
		return say("slept")
	case "key":
		return r.facts()
	case "text":
		return say(in.Text)
	case "parts":
		return say(`[{"type":"input_text","text":"first"},{"type":"input_text","text":"second ☂"}]`)
	case "object":
		return say(`{"name":"Žluťoučký kůň ☂","nested":{"list":[1,2.5,true,null,"<a>&"],"empty":{}},"integer":9007199254740991,"text":"{\"quoted\":\"\\n\"}"}`)
	case "nothing":
		return answer{status: noValue}
	case "crash":
		return answer{status: crashed, text: "secret-detail"}
	case "typed":
		if in.Count == nil {
			return answer{status: invalid, text: "count is missing"}
		}
		return say(strconv.FormatInt(*in.Count, 10))
	case "block":
		for end := time.Now().Add(time.Duration(in.MS) * time.Millisecond); time.Now().Before(end); {
		}
		return say("blocked")
	case "stuck":
		wait(context.WithoutCancel(ctx), (10 * time.Minute).Milliseconds())
		return say("")
	case "exit":
		if _, err := os.Stat(in.Unless); err != nil {
			return answer{status: ended}
		}
		return say("alive")
	case "large":
		return say(strings.Repeat("x", in.Bytes))
	default: // pay, pay_blind, pay_park
		r.log("effect")
		wait(ctx, in.MS)
		return say("paid")
	}
}

func (r request) verify() answer {
	var in arguments
	_ = json.Unmarshal(r.Arguments, &in)
	switch in.Verdict {
	case "done":
		return say("verified")
	case "not_done":
		return answer{status: notDone}
	case "crash":
		return answer{status: crashed, text: "secret-detail"}
	default:
		return answer{status: failure, text: "no receipt"}
	}
}

func (r request) facts() answer {
	text, err := json.Marshal(map[string]any{
		"idempotency_key": r.Key, "attempt": r.Attempt, "function": r.Function, "session_id": r.Session, "turn_id": r.Turn,
		"call_id": r.Call, "deadline_ms": r.Deadline.UnixMilli(), "traceparent": r.Traceparent,
	})
	if err != nil {
		return answer{status: failure, text: err.Error()}
	}
	return say(string(text))
}

func wait(ctx context.Context, ms int64) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(ms) * time.Millisecond):
	}
}

// log appends an event to the suite's log.
func (r request) log(event string) {
	line, err := json.Marshal(map[string]any{
		"event": event, "function": r.Function, "call_id": r.Call, "attempt": r.Attempt,
		"idempotency_key": r.Key, "at_ms": time.Now().UnixMilli(), "pid": os.Getpid(),
	})
	if err != nil {
		panic(err)
	}
	file, err := os.OpenFile(os.Getenv("CONFORMANCE_LOG"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if _, err := file.Write(append(line, '\n')); err != nil {
		panic(err)
	}
}
