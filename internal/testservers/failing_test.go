package testservers_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// failing is a testing.TB that lets a test watch another one fail.
type failing struct {
	testing.TB
	text strings.Builder
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	fmt.Fprintf(&f.text, format, args...)
	runtime.Goexit()
}

// fatal runs a test body that must end by Fatalf and returns what it said. Cleanups run with those of t.
func fatal(t *testing.T, body func(testing.TB)) string {
	t.Helper()
	inner := &failing{TB: t}
	done := make(chan struct{})
	returned := false
	go func() {
		defer close(done)
		body(inner)
		returned = true
	}()
	<-done
	if returned {
		t.Fatal("the body did not fail")
	}
	return inner.text.String()
}
