package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

type weatherIn struct {
	City string `json:"city" jsonschema:"the city's name, such as Bern"`
}

type weather struct {
	City    string `json:"city"`
	Weather string `json:"weather"`
	TempC   *int   `json:"temp_c"`
}

// forecasts are by the names in both languages of the demo's questions.
var forecasts = map[string]struct {
	weather string
	temp    int
}{
	"北京": {"晴", 22}, "上海": {"多云", 25}, "广州": {"雷阵雨", 30},
	"Beijing": {"sunny", 22}, "Shanghai": {"cloudy", 25}, "Guangzhou": {"thunderstorms", 30},
}

func getWeather(_ context.Context, in weatherIn) (weather, error) {
	f, ok := forecasts[in.City]
	if !ok {
		return weather{City: in.City, Weather: "no data"}, nil
	}
	return weather{City: in.City, Weather: f.weather, TempC: &f.temp}, nil
}

type sumIn struct {
	A  float64 `json:"a" jsonschema:"the first number"`
	B  float64 `json:"b" jsonschema:"the second number"`
	Op string  `json:"op" jsonschema:"add, sub, mul or div"`
}

type sum struct {
	Result float64 `json:"result"`
}

func calculate(_ context.Context, in sumIn) (sum, error) {
	switch in.Op {
	case "add":
		return sum{in.A + in.B}, nil
	case "sub":
		return sum{in.A - in.B}, nil
	case "mul":
		return sum{in.A * in.B}, nil
	case "div":
		if in.B == 0 {
			return sum{}, errors.New("division by zero")
		}
		return sum{in.A / in.B}, nil
	}
	return sum{}, fmt.Errorf("op is %q; use add, sub, mul or div", in.Op)
}

type customerIn struct {
	CustomerID string `json:"customer_id"`
}

type customer struct {
	Name string `json:"name"`
	Plan string `json:"plan"`
}

type customerOut struct {
	Found    bool      `json:"found"`
	Customer *customer `json:"customer"`
}

func getCustomer(_ context.Context, in customerIn) (customerOut, error) {
	if in.CustomerID != "123" {
		return customerOut{}, nil
	}
	return customerOut{Found: true, Customer: &customer{Name: "Example Customer", Plan: "pro"}}, nil
}

type workIn struct {
	MS int `json:"ms" jsonschema:"how long the work takes, in milliseconds"`
}

// work takes its time, as a real handler would.
func work(ctx context.Context, in workIn) (string, error) {
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-time.After(time.Duration(in.MS) * time.Millisecond):
		return "done", nil
	}
}

// Register declares the demo's functions. A long queue timeout lets a large load wait
// for its turn.
func Register(ex *executor.Executor) error {
	patient := executor.WithQueueTimeout(time.Hour)
	reads := executor.WithEffects(call.EffectsNone)
	return errors.Join(
		executor.Handle(ex, "get_weather", getWeather, reads, executor.WithDescription("Today's weather in a city.")),
		executor.Handle(ex, "calculate", calculate, reads, executor.WithDescription("A calculator: two numbers and an operation.")),
		executor.Handle(ex, "get_customer", getCustomer, reads, executor.WithDescription("Look up a customer by ID.")),
		executor.Handle(ex, workFunction, work, patient, executor.WithTimeout(10*time.Minute), executor.WithDescription("Work for some milliseconds.")),
	)
}

const workFunction = "work"

// executions counts the runs of handlers, and of calls.
type executions struct {
	mu    sync.Mutex
	total int
	calls map[string]bool
}

// count is the middleware that counts.
func (r *executions) count(next executor.Handler) executor.Handler {
	return func(ctx context.Context, c executor.Call) (executor.Output, error) {
		r.mu.Lock()
		r.total++
		r.calls[c.Key.Hash()] = true
		r.mu.Unlock()
		return next(ctx, c)
	}
}

func (r *executions) report() WorkerReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	return WorkerReport{Executed: r.total, Calls: len(r.calls)}
}
