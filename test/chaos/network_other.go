//go:build unix && !linux

package chaos

import (
	"context"
	"errors"
)

// errNoNamespaces is why there are no partitions here.
var errNoNamespaces = errors.New("network namespaces need Linux")

// Isolate is for Linux.
func Isolate(context.Context) (code int, ran bool, err error) { return 0, false, errNoNamespaces }

func isolated() (bool, error) { return false, nil }

func addHost(string, string) error { return errNoNamespaces }

func cut(string, bool) error { return errNoNamespaces }
