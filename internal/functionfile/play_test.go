package functionfile

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// play is a program of one of the roles; it does not return.
func play(role string, args []string) {
	switch role {
	case "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "print":
		_, _ = io.WriteString(os.Stdout, args[0])
	case "environment":
		_, _ = io.WriteString(os.Stdout, strings.Join(os.Environ(), "\n"))
	case "dir":
		dir, _ := os.Getwd()
		_, _ = io.WriteString(os.Stdout, dir)
	case "exit":
		_, _ = io.WriteString(os.Stdout, "not used")
		_, _ = io.WriteString(os.Stderr, args[1])
		code, _ := strconv.Atoi(args[0])
		os.Exit(code)
	case "long-error":
		_, _ = io.WriteString(os.Stderr, strings.Repeat("ä", maxError)+"the end\n")
		os.Exit(1)
	case "flood":
		for {
			if _, err := os.Stdout.Write(make([]byte, 1<<20)); err != nil {
				os.Exit(1)
			}
		}
	case "hang": // with a child in the same group, which holds the pipes
		self, _ := os.Executable()
		child := exec.Command(self, "play", "wait", args[0])
		child.Stdout = os.Stdout
		_ = child.Start()
		wait()
	case "executes": // another one, as an executor does
		self, _ := os.Executable()
		p := program{path: self, args: []string{"play", "wait", args[0]}}
		p.execute(context.Background(), nil, nil)
	case "wait":
		_ = os.WriteFile(args[0], []byte(strconv.Itoa(os.Getpid())), 0o600)
		wait()
	case "tools":
		serveTools(args...)
	case "die":
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		wait()
	}
	os.Exit(0)
}

func wait() { <-time.After(time.Minute); os.Exit(0) }
