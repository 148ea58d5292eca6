//go:build unix

package runcrash

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/callfan/callfan/internal/programtest"
)

// replicas are the dispatchers of the installation.
type replicas struct {
	t       *testing.T
	command func(replica, name string) programtest.Command

	mu     sync.Mutex
	living map[string]*process
	born   int
	died   map[string]time.Time // by the name of the process
	froze  map[string][]time.Time
}

// process is a dispatcher from its start to its death.
type process struct {
	*programtest.Process
	name, admin string
}

var replicaNames = []string{"one", "two"}

var servesAt = regexp.MustCompile(`msg="serving health, metrics and the admin API" address=(\S+)`)

// revive starts those that are dead. Must be called by the test itself.
func (rs *replicas) revive(random *rand.Rand) {
	for _, replica := range replicaNames {
		rs.mu.Lock()
		alive := rs.living[replica] != nil
		rs.born++
		number := rs.born
		rs.mu.Unlock()
		if alive {
			continue
		}
		// In some places a replica comes back under its name, in others it is a new one.
		name := replica
		if random.IntN(2) == 0 {
			name = fmt.Sprintf("%s-%d", replica, number)
		}
		p := &process{Process: programtest.Start(rs.t, rs.command(replica, name)), name: fmt.Sprintf("%s#%d", name, number)}
		p.Await(p.Stderr, "serving health, metrics and the admin API")
		p.admin = "http://" + servesAt.FindStringSubmatch(p.Stderr.String())[1]
		rs.mu.Lock()
		rs.living[replica] = p
		rs.mu.Unlock()
	}
}

// kill ends a replica, or all of them for an empty name.
func (rs *replicas) kill(replica string) {
	for _, name := range replicaNames {
		rs.mu.Lock()
		p := rs.living[name]
		if replica != "" && name != replica {
			p = nil
		}
		if p != nil {
			delete(rs.living, name)
			rs.died[p.name] = time.Now()
		}
		rs.mu.Unlock()
		if p != nil {
			p.Kill()
			p.keepLog(rs.t)
		}
	}
}

// keepLog writes what the process logged where -logs says.
func (p *process) keepLog(t *testing.T) {
	if *logs == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*logs, p.name+".log"), []byte(p.Stderr.String()), 0o600); err != nil {
		t.Errorf("keep the log of %s: %v", p.name, err)
	}
}

// freeze stops a replica, any for an empty name, so that others believe it dead.
func (rs *replicas) freeze(replica string) {
	if replica == "" {
		replica = replicaNames[rand.IntN(len(replicaNames))] //nolint:gosec // a test
	}
	rs.mu.Lock()
	p := rs.living[replica]
	if p != nil {
		rs.froze[p.name] = append(rs.froze[p.name], time.Now())
	}
	rs.mu.Unlock()
	if p != nil {
		p.Freeze()
	}
}

// thaw lets all go on.
func (rs *replicas) thaw() {
	for _, replica := range replicaNames {
		rs.mu.Lock()
		p := rs.living[replica]
		rs.mu.Unlock()
		if p != nil {
			p.Signal(syscall.SIGCONT)
		}
	}
}

// process names the running process of a replica; empty when it has just died.
func (rs *replicas) process(replica string) string {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if p := rs.living[replica]; p != nil {
		return p.name
	}
	return ""
}

// admin is the address of a living replica, empty when there is none.
func (rs *replicas) admin() string {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	names := slices.Collect(maps.Keys(rs.living))
	if len(names) == 0 {
		return ""
	}
	return rs.living[names[rand.IntN(len(names))]].admin //nolint:gosec // a test
}

// ailed says when, between two times, something was done to a process first.
func (rs *replicas) ailed(process string, from, to time.Time) (when time.Time, ok bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	all := slices.Clone(rs.froze[process])
	if died, dead := rs.died[process]; dead {
		all = append(all, died)
	}
	for _, at := range all {
		if at.After(from) && at.Before(to) && (!ok || at.Before(when)) {
			when, ok = at, true
		}
	}
	return when, ok
}
