// Package effects is the append-only record of what the chaos run's executors did. Its files outlive their writers, which
// are killed at any instant: each line is one write, so that it is there whole or not at all.
package effects

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Event says what a line records.
type Event string

// The events of one run of a handler.
const (
	Start Event = "start"
	// Done is the side effect itself. It happens in the middle of the run.
	Done Event = "effect"
	End  Event = "end"
	// Barrier is a verify handler's answer "not done": runs that started before it must not act any more.
	Barrier Event = "barrier"
	// Decided is an operator's finding "not done": runs of this attempt and of earlier ones must not act any more.
	Decided Event = "decided"
)

// Line is one line of a function's file.
type Line struct {
	Event Event `json:"event"`
	// Number is the workload's own name of the call.
	Number string `json:"n"`
	// Key is the call's key, session/turn/call.
	Key            string `json:"key"`
	IdempotencyKey string `json:"idempotency_key"`
	// Run is one entry of the handler.
	Run       string `json:"run"`
	Attempt   int    `json:"attempt"`
	Uncertain bool   `json:"uncertain,omitempty"`
	PID       int    `json:"pid"`
	// At is the time in Unix milliseconds.
	At int64 `json:"at"`
}

// File is the file of one function.
func File(dir, function string) string { return filepath.Join(dir, function+".jsonl") }

// Append adds a line.
func Append(path string, line Line) error {
	line.PID, line.At = os.Getpid(), time.Now().UnixMilli()
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	return errors.Join(err, file.Close())
}

// Read reads all lines of a file; a file that is not there has none. A last line that is being written is left out.
func Read(path string) ([]Line, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	var lines []Line
	scanner := bufio.NewScanner(bytes.NewReader(data))
	for scanner.Scan() {
		var line Line
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, len(lines)+1, err)
		}
		lines = append(lines, line)
	}
	return lines, scanner.Err()
}
