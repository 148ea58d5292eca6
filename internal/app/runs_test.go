package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3/conversations"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/ops/opsclient"
	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

// desk serves the functions of the assistant, and notes what it gets.
type desk struct {
	mu   sync.Mutex
	seen []string
}

func (d *desk) calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.seen...)
}

func startDesk(t *testing.T, natsURL string) *desk {
	t.Helper()
	d := &desk{}
	ex, err := executor.New(executor.Config{Pool: "desk", Queue: queue.Config{URL: natsURL}, StopTimeout: time.Second, Logger: logger(t)})
	require.NoError(t, err)
	handle := func(name, parameters string, answer func(executor.Call) (executor.Output, error)) {
		require.NoError(t, executor.HandleRaw(ex, name, func(_ context.Context, c executor.Call) (executor.Output, error) {
			d.mu.Lock()
			d.seen = append(d.seen, name+string(c.Arguments))
			d.mu.Unlock()
			return answer(c)
		}, executor.WithDescription("The function "+name+"."), executor.WithParameters(json.RawMessage(parameters))))
	}
	anything := `{"type":"object","properties":{},"additionalProperties":true}`
	temperatures := map[string]int{"北京": 22, "上海": 25, "Beijing": 22, "Shanghai": 25}
	handle("get_weather", `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`,
		func(c executor.Call) (executor.Output, error) {
			var in struct{ City string }
			if err := json.Unmarshal(c.Arguments, &in); err != nil {
				return executor.Output{}, err
			}
			temp, ok := temperatures[in.City]
			if !ok {
				return executor.Output{}, errors.New(`no "weather" for ` + in.City)
			}
			return executor.Text(fmt.Sprintf(`{"city":%q,"weather":"晴","temp_c":%d}`, in.City, temp)), nil
		})
	handle("calculate", anything, func(c executor.Call) (executor.Output, error) {
		var in struct{ A, B float64 }
		if err := json.Unmarshal(c.Arguments, &in); err != nil {
			return executor.Output{}, err
		}
		return executor.Text(`{"result":` + strconv.FormatFloat(in.A-in.B, 'g', -1, 64) + `}`), nil
	})
	handle("get_time", anything, func(executor.Call) (executor.Output, error) { return executor.Text("12:00"), nil })
	handle("slow", anything, func(executor.Call) (executor.Output, error) { return executor.Text("at last"), nil })
	handle("run_sql", `{"type":"object","properties":{"sql":{"type":"string"}},"required":["sql"]}`, func(executor.Call) (executor.Output, error) {
		return executor.Text("1 row"), nil
	})
	handle("crm.lookup", anything, func(executor.Call) (executor.Output, error) { return executor.Text("found"), nil })
	handle("picture", anything, func(executor.Call) (executor.Output, error) {
		return executor.Content{executor.TextPart("t"), executor.ImagePart("https://x/y.png"), executor.FilePart("file_1")}.Output()
	})
	runExecutor(t, ex)
	return d
}

// office is a dispatcher with the simulator, and a client of its admin API.
type office struct {
	*service
	desk   *desk
	client *opsclient.Client
}

func openOffice(t *testing.T) *office {
	t.Helper()
	server, api := testservers.NATS(t), startService(t)
	d := run(t, options(t, api, server.URL()))
	o := &office{service: api, desk: startDesk(t, server.URL()), client: d.door(t)}
	require.Eventually(t, func() bool {
		functions, err := o.client.Functions(t.Context())
		return err == nil && len(functions) == 7
	}, patience, 20*time.Millisecond)
	return o
}

// ask starts a run and waits for its end.
func (o *office) ask(t *testing.T, request string) (runs.Run, []runs.Notice) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	started, err := o.client.StartRun(ctx, json.RawMessage(request))
	require.NoError(t, err)
	var notices []runs.Notice
	require.NoError(t, o.client.FollowRun(ctx, started.ID, func(n runs.Notice) { notices = append(notices, n) }))
	got, err := o.client.Run(ctx, started.ID)
	require.NoError(t, err)
	return got, notices
}

// outputs are the outputs that the API got for the calls of a run's functions, by call id.
func (o *office) outputs(run runs.Run) []string {
	var got []string
	for _, round := range run.Rounds {
		for _, c := range round.Calls {
			for _, r := range o.ReceivedOutputs() {
				if r.CallID == c.ID {
					for _, content := range r.Contents {
						got = append(got, string(content.Output))
					}
				}
			}
		}
	}
	return got
}

func shape(run runs.Run) (calls []int) {
	for _, r := range run.Rounds {
		calls = append(calls, len(r.Calls))
	}
	return calls
}

func script(text string) string { return strconv.Quote(text) }

// TestEveryFeatureOfFunctionCalling goes through the official client to a simulator.
func TestEveryFeatureOfFunctionCalling(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	question := `"input":"北京和上海哪个更热?差几度?","model":"gpt-6.1-terra"`
	weather := `["get_weather","calculate"]`
	const warmer = "3 度"
	for name, tc := range map[string]struct {
		request string
		status  runs.Status
		reason  string
		shape   []int
		text    string
		check   func(t *testing.T, run runs.Run, notices []runs.Notice)
	}{
		"two parallel calls, then one": {
			request: `{` + question + `,"tools":` + weather + `,"instructions":"be short"}`, shape: []int{2, 1, 0}, text: warmer,
			check: func(t *testing.T, run runs.Run, notices []runs.Notice) {
				t.Helper()
				var called, answered int
				var text strings.Builder
				for _, n := range notices {
					switch n.Type {
					case runs.NoticeCall:
						called++
					case runs.NoticeAnswered:
						answered++
					case runs.NoticeText:
						text.WriteString(n.Delta)
					}
				}
				require.Equal(t, 3, called)
				require.Equal(t, 3, answered)
				require.Equal(t, run.Text, text.String())
			},
		},
		"in English":            {request: `{"model":"m","input":"Which is warmer, Beijing or Shanghai, and by how many degrees?","tools":` + weather + `}`, shape: []int{2, 1, 0}, text: "3 degrees"},
		"in the foreground":     {request: `{` + question + `,"tools":` + weather + `,"background":false}`, shape: []int{2, 1, 0}, text: warmer},
		"without a stream":      {request: `{` + question + `,"tools":` + weather + `,"stream":false}`, shape: []int{2, 1, 0}, text: warmer},
		"in one answer each":    {request: `{` + question + `,"tools":` + weather + `,"stream":false,"background":false}`, shape: []int{2, 1, 0}, text: warmer},
		"nothing stored":        {request: `{` + question + `,"tools":` + weather + `,"store":false}`, shape: []int{2, 1, 0}, text: warmer},
		"one call at a time":    {request: `{` + question + `,"tools":` + weather + `,"parallel_tool_calls":false}`, shape: []int{1, 1, 1, 0}, text: warmer},
		"no tool may be called": {request: `{` + question + `,"tools":` + weather + `,"tool_choice":"none"}`, shape: []int{0}},
		"a tool has to be called": {
			request: `{"model":"m","input":"Hello.","tools":["get_time"],"tool_choice":"required"}`, shape: []int{1, 0},
		},
		"one function has to be called": {
			request: `{"model":"m","input":"现在几点?","tools":["get_weather","calculate","get_time"],"tool_choice":{"type":"function","name":"get_weather"}}`,
			check: func(t *testing.T, run runs.Run, _ []runs.Notice) {
				t.Helper()
				require.Equal(t, "get_weather", run.Rounds[0].Calls[0].Function)
				require.LessOrEqual(t, len(run.Rounds), 3)
			},
		},
		"some tools are allowed": {
			request: `{"model":"m","input":"What time is it?","tools":["get_weather","get_time"],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"get_time"}]}}`,
			shape:   []int{1, 0},
			check: func(t *testing.T, run runs.Run, _ []runs.Notice) {
				t.Helper()
				require.Equal(t, "get_time", run.Rounds[0].Calls[0].Function)
			},
		},
		"not strict": {request: `{` + question + `,"tools":[{"type":"function","name":"get_weather","strict":false},"calculate"]}`, shape: []int{2, 1, 0}, text: warmer},
		"an error is an output": {
			request: `{"model":"m","input":` + script(`{"rounds":[[{"name":"get_weather","arguments":{"city":"Atlantis"}}]],"say":"ok"}`) + `,"tools":["get_weather"]}`,
			shape:   []int{1, 0}, text: "ok",
			check: func(t *testing.T, run runs.Run, _ []runs.Notice) {
				t.Helper()
				require.Equal(t, []string{`"{\"error\":\"no \\\"weather\\\" for Atlantis\"}"`}, o.outputs(run))
			},
		},
		"wrong arguments are an output": {
			request: `{"model":"m","input":` + script(`{"rounds":[[{"name":"get_weather","arguments":{"town":1}}]],"say":"ok"}`) + `,"tools":["get_weather"]}`,
			shape:   []int{1, 0}, text: "ok",
			check: func(t *testing.T, run runs.Run, _ []runs.Notice) {
				t.Helper()
				require.Contains(t, o.outputs(run)[0], `"{\"error\":\"the arguments do not fit the parameters of get_weather:`)
			},
		},
		"a namespace": {
			request: `{"model":"m","input":` + script(`{"rounds":[[{"name":"lookup","namespace":"crm","arguments":{"id":9007199254740993}}]],"say_results":true}`) + `,"tools":["crm.lookup"]}`,
			shape:   []int{1, 0}, text: "found",
			check: func(t *testing.T, _ runs.Run, _ []runs.Notice) {
				t.Helper()
				require.Contains(t, o.desk.calls(), `crm.lookup{"id":9007199254740993}`)
			},
		},
		"a program calls": {
			request: `{"model":"m","input":` + script(`{"rounds":[[{"name":"get_time","arguments":{},"caller_id":"call_program"}]],"say":"ok"}`) + `,"tools":["get_time"]}`,
			shape:   []int{1, 0}, text: "ok",
			check: func(t *testing.T, run runs.Run, _ []runs.Notice) {
				t.Helper()
				for _, r := range o.ReceivedOutputs() {
					if r.CallID == run.Rounds[0].Calls[0].ID {
						require.JSONEq(t, `{"type":"program","caller_id":"call_program"}`, string(r.Contents[0].Caller))
					}
				}
			},
		},
		"a custom tool": {
			request: `{"model":"m","input":` + script(`{"rounds":[[{"name":"run_sql","input":"SELECT \"北京\";\n-- x"}]],"say_results":true}`) + `,"tools":[{"type":"custom","name":"run_sql"}]}`,
			shape:   []int{1, 0}, text: "1 row",
			check: func(t *testing.T, _ runs.Run, _ []runs.Notice) {
				t.Helper()
				var in struct{ SQL string }
				for _, c := range o.desk.calls() {
					if arguments, ok := strings.CutPrefix(c, "run_sql"); ok {
						require.NoError(t, json.Unmarshal([]byte(arguments), &in))
					}
				}
				require.Equal(t, "SELECT \"北京\";\n-- x", in.SQL)
			},
		},
		"parts as an output": {
			request: `{"model":"m","input":` + script(`{"rounds":[[{"name":"picture","arguments":{}}]],"say":"ok"}`) + `,"tools":["picture"]}`,
			shape:   []int{1, 0}, text: "ok",
			check: func(t *testing.T, run runs.Run, _ []runs.Notice) {
				t.Helper()
				require.Equal(t, []string{`[{"type":"input_text","text":"t"},{"type":"input_image","image_url":"https://x/y.png"},{"type":"input_file","file_id":"file_1"}]`}, o.outputs(run))
			},
		},
		"an async call": {
			request: `{"model":"m","input":` + script(`{"rounds":[[{"name":"slow","arguments":{}},{"name":"get_time","arguments":{}}]],"say":"ok"}`) + `,"tools":["get_time",{"type":"function","name":"slow","async":true}]}`,
			text:    "ok",
			check: func(t *testing.T, run runs.Run, _ []runs.Notice) {
				t.Helper()
				require.True(t, run.Rounds[0].Calls[0].Async)
				require.ElementsMatch(t, []string{`"at last"`, `"12:00"`}, o.outputs(run))
			},
		},
		"a search for tools": {
			request: `{"model":"m","input":` + script(`{"rounds":[[{"type":"tool_search","arguments":{"goal":"function get_time"}}],[{"name":"get_time","arguments":{}}]],"say_results":true}`) + `,"tools":[{"type":"tool_search","execution":"client","description":"d","parameters":{"type":"object","properties":{"goal":{"type":"string"}}}}]}`,
			text:    "12:00",
		},
		"incomplete": {
			request: `{"model":"m","input":` + script(`{"rounds":[],"say":"half","incomplete":"max_output_tokens"}`) + `}`,
			status:  runs.Incomplete, reason: "max_output_tokens", shape: []int{0}, text: "half",
		},
		"an incomplete call is not run": {
			request: `{"model":"m","input":` + script(`{"rounds":[[{"name":"slow","arguments":{"never":1},"incomplete":true}]]}`) + `,"tools":["slow"]}`,
			status:  runs.Incomplete, reason: "max_output_tokens",
			check: func(t *testing.T, _ runs.Run, _ []runs.Notice) {
				t.Helper()
				require.NotContains(t, o.desk.calls(), `slow{"never":1}`)
			},
		},
		"failed": {
			request: `{"model":"m","input":` + script(`{"rounds":[],"say":"","fail":"server_error"}`) + `}`,
			status:  runs.Failed, reason: "server_error", shape: []int{0},
		},
		"a refusal": {
			request: `{"model":"m","input":` + script(`{"rounds":[],"say":"","refuse":"I will not."}`) + `}`, shape: []int{0},
			check: func(t *testing.T, run runs.Run, _ []runs.Notice) {
				t.Helper()
				require.Equal(t, "I will not.", run.Refusal)
			},
		},
		"a response that is not there": {
			request: `{"model":"m","input":"x","previous_response_id":"resp_none"}`, status: runs.Failed, reason: "previous_response_not_found", shape: []int{0},
		},
		"too many rounds": {
			request: `{` + question + `,"tools":` + weather + `,"bounds":{"rounds":2}}`, status: runs.Stopped, reason: runs.ReasonRounds, shape: []int{2, 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, notices := o.ask(t, tc.request)
			if tc.status == "" {
				tc.status = runs.Completed
			}
			require.Equal(t, tc.status, got.Status, "%s %s", got.Reason, got.Error)
			require.Equal(t, tc.reason, got.Reason, got.Error)
			if tc.shape != nil {
				require.Equal(t, tc.shape, shape(got))
			}
			require.Contains(t, got.Text, tc.text)
			if tc.check != nil {
				tc.check(t, got, notices)
			}
		})
	}
}

func TestARunInAConversation(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	conversation, err := o.service.client.Conversations.New(t.Context(), conversations.ConversationNewParams{})
	require.NoError(t, err)
	for range 2 {
		got, _ := o.ask(t, `{"model":"m","input":"北京和上海哪个更热?差几度?","tools":["get_weather","calculate"],"conversation":"`+conversation.ID+`"}`)
		require.Equal(t, runs.Completed, got.Status, got.Error)
		require.Equal(t, []int{2, 1, 0}, shape(got))
	}
}

func TestACancelledRunStopsItsCalls(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	started, err := o.client.StartRun(t.Context(), json.RawMessage(`{"model":"m","tools":[{"type":"function","name":"nobody","parameters":{"type":"object"}}],"input":`+script(`{"rounds":[[{"name":"nobody","arguments":{}}]]}`)+`}`))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		calls, err := o.client.Calls(t.Context(), started.ID)
		return err == nil && len(calls) == 1
	}, patience, 20*time.Millisecond)
	_, err = o.client.CancelRun(t.Context(), started.ID)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		calls, err := o.client.Calls(t.Context(), started.ID)
		got, err2 := o.client.Run(t.Context(), started.ID)
		return err == nil && err2 == nil && got.Status == runs.Cancelled && len(calls) == 1 && calls[0].State == "cancelled"
	}, patience, 20*time.Millisecond)
}

// TestARunSurvivesTheLossOfTheResults: Redis loses everything while the functions of a
// response are at work, one of which has answered.
func TestARunSurvivesTheLossOfTheResults(t *testing.T) {
	t.Parallel()
	server, store, api := testservers.NATS(t), testservers.Redis(t), startService(t)
	o := options(t, api, server.URL())
	o.Redis = &redisstore.Config{URL: store.URL()}
	address, err := redis.ParseURL(store.URL())
	require.NoError(t, err)
	client := redis.NewClient(address)
	t.Cleanup(func() { require.NoError(t, client.Close()) })

	ex, err := executor.New(executor.Config{Pool: "desk", Queue: queue.Config{URL: server.URL()}, StopTimeout: time.Second, Logger: logger(t)})
	require.NoError(t, err)
	var ran atomic.Int32
	begun, release := make(chan struct{}, 9), make(chan struct{})
	require.NoError(t, executor.HandleRaw(ex, "quick", func(context.Context, executor.Call) (executor.Output, error) {
		ran.Add(1)
		return executor.Text("quick"), nil
	}))
	require.NoError(t, executor.HandleRaw(ex, "slow", func(context.Context, executor.Call) (executor.Output, error) {
		ran.Add(1)
		begun <- struct{}{}
		<-release
		return executor.Text("slow"), nil
	}))
	runExecutor(t, ex)
	of := &office{service: api, client: run(t, o).door(t)}
	require.Eventually(t, func() bool {
		functions, err := of.client.Functions(t.Context())
		return err == nil && len(functions) == 2
	}, patience, 20*time.Millisecond)

	started, err := of.client.StartRun(t.Context(), json.RawMessage(`{"model":"m","tools":["quick","slow"],"input":`+
		script(`{"rounds":[[{"name":"quick","arguments":{}},{"name":"slow","arguments":{}}]],"say_results":true}`)+`}`))
	require.NoError(t, err)
	<-begun
	require.Eventually(t, func() bool {
		calls, err := of.client.Calls(t.Context(), started.ID)
		return err == nil && slices.ContainsFunc(calls, func(c ops.Call) bool { return c.State == call.Settled })
	}, patience, 20*time.Millisecond)
	require.NoError(t, client.FlushAll(t.Context()).Err())
	close(release)
	var got runs.Run
	require.Eventually(t, func() bool {
		got, err = of.client.Run(t.Context(), started.ID)
		return err == nil && got.Status.Final()
	}, patience, 20*time.Millisecond)
	require.Equal(t, runs.Completed, got.Status, got.Error)
	require.Equal(t, "quick\nslow", strings.TrimSpace(got.Text))
	require.EqualValues(t, 2, ran.Load())
}

// TestSessionsAndRunsShareExecutors has both APIs use one executor at the same time.
func TestSessionsAndRunsShareExecutors(t *testing.T) {
	t.Parallel()
	server, api := testservers.NATS(t), startService(t)
	o := options(t, api, server.URL())
	o.Sessions = []string{api.create(t, oneCall, nil)}
	startExecutor(t, server.URL())
	d := run(t, o)
	client := d.door(t)
	require.Eventually(t, func() bool {
		functions, err := client.Functions(t.Context())
		return err == nil && len(functions) == 1
	}, patience, 20*time.Millisecond)
	both := &office{service: api, client: client}
	got, _ := both.ask(t, `{"model":"m","tools":["greet"],"input":`+script(`{"rounds":[[{"name":"greet","arguments":{}}]],"say_results":true}`)+`}`)
	require.Equal(t, "hello", strings.TrimSpace(got.Text))
	api.awaitTurns(t, 1)
}
