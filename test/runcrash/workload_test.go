//go:build unix

package runcrash

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

// modes are the ways to ask, as members of the request.
var modes = []struct{ name, members string }{
	{"background, streamed", ``},
	{"background, polled", `,"stream":false`},
	{"foreground, streamed", `,"background":false`},
	{"foreground, at once", `,"background":false,"stream":false`},
	{"not stored", `,"store":false`},
}

// plan is a run to be made: the numbers to be squared in each round.
type plan struct {
	key, mode string
	body      string
	numbers   []int
	id        string
	run       runs.Run
	err       error
	took      time.Duration
}

// planned makes the n-th run.
func planned(n int, seed uint64, random *rand.Rand) *plan {
	mode := modes[n%len(modes)]
	p := &plan{key: fmt.Sprintf("crash-%d-%d", seed, n), mode: mode.name}
	var rounds [][]string
	for range 3 + random.IntN(2) {
		var round []string
		for i := range 1 + random.IntN(3) {
			p.numbers = append(p.numbers, random.IntN(1000))
			round = append(round, fmt.Sprintf(`{"name":"square","arguments":{"n":%d},"after_ms":%d}`, p.numbers[len(p.numbers)-1], 30*i))
		}
		rounds = append(rounds, round)
	}
	var script bytes.Buffer
	script.WriteString(`{"rounds":[`)
	for i, round := range rounds {
		if i > 0 {
			script.WriteByte(',')
		}
		script.WriteString("[" + strings.Join(round, ",") + "]")
	}
	fmt.Fprintf(&script, `],"say":%q,"say_results":true}`, p.key)
	input, _ := json.Marshal(script.String()) // a string
	p.body = fmt.Sprintf(`{"model":"m","input":%s,"tools":["square"]%s}`, input, mode.members)
	return p
}

var line = regexp.MustCompile(`^(\d+) squared is (\d+), says execution \d+$`)

// verdict says what is wrong with the end of a run; empty for nothing.
func (p *plan) verdict() string {
	if p.err != nil {
		return p.err.Error()
	}
	if p.run.Status != runs.Completed {
		return fmt.Sprintf("it is %s: %s: %s", p.run.Status, p.run.Reason, p.run.Error)
	}
	lines := strings.Split(p.run.Text, "\n")
	if len(lines) != 1+len(p.numbers) || lines[0] != p.key {
		return "the answer is " + p.run.Text
	}
	for i, n := range p.numbers {
		if m := line.FindStringSubmatch(lines[1+i]); m == nil || m[1] != fmt.Sprint(n) || m[2] != fmt.Sprint(n*n) {
			return fmt.Sprintf("the answer's line %d is %q, want the square of %d", i+1, lines[1+i], n)
		}
	}
	return ""
}

// do starts the run by whichever replica answers, and waits for its end.
func (p *plan) do(ctx context.Context, admin func() string, asked func()) {
	began := time.Now()
	defer func() { p.took = time.Since(began) }()
	for {
		status, body := speak(ctx, admin(), http.MethodPost, "/v1/runs", p.key, p.body)
		asked()
		if status == http.StatusCreated && json.Unmarshal(body, &p.run) == nil {
			break
		}
		if status >= 400 && status < 500 && status != http.StatusNotFound {
			p.err = fmt.Errorf("it was not taken: %d: %s", status, body)
			return
		}
		if !rest(ctx, 50*time.Millisecond) {
			p.err = fmt.Errorf("it was not taken in time: %d: %s", status, body)
			return
		}
	}
	p.id = p.run.ID
	for rest(ctx, 150*time.Millisecond) {
		status, body := speak(ctx, admin(), http.MethodGet, "/v1/runs/"+p.id, "", "")
		var run runs.Run
		if status == http.StatusOK && json.Unmarshal(body, &run) == nil {
			p.run = run
			if run.Status.Final() {
				return
			}
		}
	}
	p.err = fmt.Errorf("it did not end; it is %+v", p.run)
}

// rest waits; false when the time is over.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// speak makes a request to an admin API; the status is 0 when there is no answer.
func speak(ctx context.Context, admin, method, path, key, body string) (status int, answer []byte) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, admin+path, strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
		req.Header["idempotency-key"] = []string{key} // net/http does not repeat it by itself then
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	if err != nil {
		return 0, nil
	}
	return res.StatusCode, answer
}

// journal is what the executor has run.
type journal struct {
	trap *trap

	mu     sync.Mutex
	total  int
	byCall map[call.Key]int
	byRun  map[string]int
}

// square is the function. No two executions have the same output.
func (j *journal) square(ctx context.Context, c executor.Call) (executor.Output, error) {
	j.mu.Lock()
	j.total++
	number := j.total
	j.byCall[c.Key]++
	j.byRun[c.Session]++
	j.mu.Unlock()
	var in struct{ N int }
	if err := json.Unmarshal(c.Arguments, &in); err != nil {
		return executor.Output{}, err
	}
	j.trap.reach(running, "")
	rest(ctx, time.Duration(5+7*number%90)*time.Millisecond)
	j.trap.reach(ran, "")
	return executor.Text(fmt.Sprintf("%d squared is %d, says execution %d", in.N, in.N*in.N, number)), nil
}
