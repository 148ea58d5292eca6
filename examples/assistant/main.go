// Command assistant serves the functions of an assistant that knows the weather, calculates, and tells the time.
//
//	NATS_URL=nats://127.0.0.1:4222 go run ./examples/assistant -lang zh
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
)

func main() {
	lang := flag.String("lang", preferred(os.Getenv("LANG")), "language of the functions: zh or en")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *lang); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// preferred is the language for a locale such as zh_CN.UTF-8.
func preferred(locale string) string {
	if strings.HasPrefix(locale, "zh") {
		return "zh"
	}
	return "en"
}

func run(ctx context.Context, lang string) error {
	ex, err := executor.New(executor.Config{
		Pool: "assistant",
		// Another language is another definition, and so another version.
		Version: lang,
		Queue:   queue.Config{URL: os.Getenv("NATS_URL")}, // empty: nats://127.0.0.1:4222
	})
	if err != nil {
		return err
	}
	if err := register(ex, lang); err != nil {
		return err
	}
	return ex.Run(ctx)
}
