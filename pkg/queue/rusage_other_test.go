//go:build !unix

package queue

import "time"

func cpuTime() time.Duration { return 0 }
