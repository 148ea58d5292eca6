// Command executor-go serves four functions with the Go SDK.
//
//	NATS_URL=nats://127.0.0.1:4222 go run ./examples/executor-go
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		slog.New(slog.NewTextHandler(os.Stderr, nil)).Error("the executor failed", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	ex, err := executor.New(executor.Config{
		Pool:  "examples",
		Queue: queue.Config{URL: os.Getenv("NATS_URL")},
	})
	if err != nil {
		return err
	}
	if err := register(ex); err != nil {
		return err
	}
	return ex.Run(ctx)
}

// register is apart from run so that tests can call it with executortest.
func register(ex *executor.Executor) error {
	reads := executor.WithEffects(call.EffectsNone) // safe to run again after a crash
	return errors.Join(
		executor.Handle(ex, "get_weather", getWeather, reads, executor.WithDescription("The current weather of a city.")),
		executor.Handle(ex, "calculate", calculate, reads, executor.WithDescription("Adds, subtracts, multiplies or divides two numbers.")),
		executor.Handle(ex, "get_customer", getCustomer, reads, executor.WithDescription("Look up a customer by ID.")),
		executor.Handle(ex, "get_time", getTime, reads, executor.WithDescription("The current time."), executor.WithTimeout(5*time.Second)),
	)
}

type weatherArguments struct {
	City string `json:"city" jsonschema:"the city's name"`
}

type weather struct {
	City        string `json:"city"`
	Temperature int    `json:"temperature"`
	Sky         string `json:"sky"`
}

func getWeather(_ context.Context, in weatherArguments) (weather, error) {
	known := map[string]weather{
		"Beijing": {"Beijing", 22, "clear"}, "北京": {"北京", 22, "晴"},
		"Shanghai": {"Shanghai", 25, "cloudy"}, "上海": {"上海", 25, "多云"},
	}
	w, ok := known[in.City]
	if !ok {
		return weather{}, fmt.Errorf("no weather is known for %q", in.City) // the model reads this text
	}
	return w, nil
}

type calculateArguments struct {
	A  float64 `json:"a"`
	B  float64 `json:"b"`
	Op string  `json:"op" jsonschema:"one of add, sub, mul, div"`
}

func calculate(_ context.Context, in calculateArguments) (float64, error) {
	switch in.Op {
	case "add":
		return in.A + in.B, nil
	case "sub":
		return in.A - in.B, nil
	case "mul":
		return in.A * in.B, nil
	case "div":
		if in.B == 0 {
			return 0, errors.New("division by zero")
		}
		return in.A / in.B, nil
	}
	return 0, fmt.Errorf("op is %q; use add, sub, mul or div", in.Op)
}

type customerArguments struct {
	CustomerID string `json:"customer_id"`
}

type customer struct {
	Name string `json:"name"`
	Plan string `json:"plan"`
}

type customerAnswer struct {
	Found    bool      `json:"found"`
	Customer *customer `json:"customer"`
}

func getCustomer(_ context.Context, in customerArguments) (customerAnswer, error) {
	if in.CustomerID != "123" {
		return customerAnswer{}, nil
	}
	return customerAnswer{Found: true, Customer: &customer{Name: "Example Customer", Plan: "pro"}}, nil
}

func getTime(context.Context, struct{}) (string, error) {
	return time.Now().Format(time.RFC3339), nil
}
