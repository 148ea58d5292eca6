package main

import (
	"context"
	"io"
	"os"
	"strconv"
	"time"
)

// The exit statuses that docs/functions-file.md gives a meaning.
const (
	exitInvalidArguments = 65
	exitTechnical        = 75
	exitNotDone          = 244
)

// runProgram is one call of a function, in a process of its own.
func runProgram(function string) {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	attempt, _ := strconv.Atoi(os.Getenv("FN_ATTEMPT"))
	deadline, _ := time.Parse(time.RFC3339, os.Getenv("FN_DEADLINE"))
	r := request{
		Function: function, Session: os.Getenv("FN_SESSION_ID"), Turn: os.Getenv("FN_TURN_ID"), Call: os.Getenv("FN_CALL_ID"),
		Key: os.Getenv("IDEMPOTENCY_KEY"), Traceparent: os.Getenv("TRACEPARENT"), Attempt: attempt, Deadline: deadline,
		Verify: os.Getenv("FN_VERIFY") == "1", Arguments: input,
	}
	switch a := r.perform(context.Background()); a.status {
	case success:
		_, _ = io.WriteString(os.Stdout, a.text)
	case noValue: // its output is none
	case failure:
		_, _ = io.WriteString(os.Stderr, a.text)
		os.Exit(1)
	case invalid:
		_, _ = io.WriteString(os.Stderr, a.text)
		os.Exit(exitInvalidArguments)
	case technical:
		_, _ = io.WriteString(os.Stderr, a.text+"\nRetry-After: "+a.seconds()+"\n")
		os.Exit(exitTechnical)
	case notDone:
		os.Exit(exitNotDone)
	case crashed:
		_, _ = io.WriteString(os.Stderr, a.text)
		kill(os.Getpid())
	case ended:
		kill(os.Getppid())
		select {} // on Linux a program ends with its executor
	}
}

func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}
