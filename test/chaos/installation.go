//go:build unix

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
)

const (
	natsServers = 3
	dispatchers = 3
	executors   = 4
	partitions  = 8
	masterName  = "chaos"
	ackWait     = 5 * time.Second
	leaseTTL    = 4 * time.Second
	// startPatience is generous, for a machine that does other things too.
	startPatience = 3 * time.Minute
	adminToken    = "of-the-chaos-operator" //nolint:gosec // of a test
)

// installation is all processes of the run.
type installation struct {
	dir      string
	programs programs
	net      network
	nats     []*process
	natsURL  string
	// redis are the two data nodes, which change roles, and redisAddrs their addresses.
	redis        []*process
	redisAddrs   []string
	sentinel     *process
	sentinelAddr string
	dispatchers  []*process
	executors    []*process
	// admins are the roots of the dispatchers' admin APIs.
	admins []string
	conn   *nats.Conn
	js     jetstream.JetStream
}

// effectsDir is where executors record what they did.
func (i *installation) effectsDir() string { return filepath.Join(i.dir, "effects") }

func (i *installation) all() []*process {
	var all []*process
	for _, group := range [][]*process{i.executors, i.dispatchers, {i.sentinel}, i.redis, i.nats} {
		all = append(all, group...)
	}
	return all
}

// startServers starts NATS and Redis and waits until both are whole.
func (i *installation) startServers(ctx context.Context) error {
	if err := os.MkdirAll(i.effectsDir(), 0o700); err != nil {
		return err
	}
	if err := i.startNATS(ctx); err != nil {
		return err
	}
	return i.startRedis(ctx)
}

func (i *installation) startNATS(ctx context.Context) error {
	clients, routes := ports(natsServers), ports(natsServers)
	var urls, peers []string
	for n := range natsServers {
		p := &process{name: fmt.Sprintf("nats-%d", n+1), path: i.programs.nats, dir: i.dir}
		host, err := i.net.place(p)
		if err != nil {
			return err
		}
		i.nats = append(i.nats, p)
		clients[n], routes[n] = at(host, clients[n]), at(host, routes[n])
		urls = append(urls, "nats://"+clients[n])
		peers = append(peers, fmt.Sprintf("%q", "nats://"+routes[n]))
	}
	i.natsURL = strings.Join(urls, ",")
	for n, p := range i.nats {
		name := p.name
		path := filepath.Join(i.dir, name+".conf")
		text := fmt.Sprintf("server_name: %s\nlisten: %q\nmax_payload: 8MB\njetstream { store_dir: %q }\n"+
			"cluster { name: chaos, listen: %q, routes: [%s] }\n",
			name, clients[n], filepath.Join(i.dir, name), routes[n], strings.Join(peers, ", "))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		p.args = []string{"--config", path}
	}
	if err := startAll(i.nats); err != nil {
		return err
	}
	return until(ctx, startPatience, "the NATS cluster has no leader", func() error {
		if i.conn == nil {
			conn, err := nats.Connect(i.natsURL, nats.MaxReconnects(-1), nats.ReconnectWait(200*time.Millisecond),
				nats.PingInterval(2*time.Second), nats.MaxPingsOutstanding(2))
			if err != nil {
				return err
			}
			i.conn = conn
			if i.js, err = jetstream.New(conn); err != nil {
				return err
			}
		}
		_, err := i.js.AccountInfo(ctx)
		return err
	})
}

func (i *installation) startRedis(ctx context.Context) error {
	host := i.net.base()
	for _, port := range ports(2) {
		i.redisAddrs = append(i.redisAddrs, at(host, port))
	}
	i.sentinelAddr = at(host, ports(1)[0])
	for n, addr := range i.redisAddrs {
		name := fmt.Sprintf("redis-%d", n+1)
		dir := filepath.Join(i.dir, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		text := fmt.Sprintf("port %s\nbind %s\nprotected-mode no\ndir %s\nsave \"\"\nappendonly yes\nmaxmemory-policy noeviction\n"+
			"repl-diskless-sync-delay 0\nrepl-timeout 10\n", port(addr), host, dir)
		if n > 0 {
			text += "replicaof " + host + " " + port(i.redisAddrs[0]) + "\n"
		}
		p, err := i.redisProcess(name, text)
		if err != nil {
			return err
		}
		i.redis = append(i.redis, p)
	}
	sentinel, err := i.redisProcess("sentinel", fmt.Sprintf("port %s\nbind %s\nprotected-mode no\ndir %s\n"+
		"sentinel monitor %s %s %s 1\nsentinel down-after-milliseconds %s 1500\nsentinel failover-timeout %s 4000\n",
		port(i.sentinelAddr), host, i.dir, masterName, host, port(i.redisAddrs[0]), masterName, masterName), "--sentinel")
	if err != nil {
		return err
	}
	i.sentinel = sentinel
	if err := startAll(append(i.redis[:2:2], sentinel)); err != nil {
		return err
	}
	return until(ctx, startPatience, "Redis has no replica", func() error { return i.redisWhole(ctx) })
}

func (i *installation) redisProcess(name, config string, args ...string) (*process, error) {
	path := filepath.Join(i.dir, name+".conf") // which Redis rewrites when roles change
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, err
	}
	return &process{name: name, path: i.programs.redis, args: append([]string{path}, args...), dir: i.dir}, nil
}

// startCallfan starts dispatchers and executors.
func (i *installation) startCallfan(apiURL string) error {
	listen := ports(dispatchers)
	for n := range dispatchers {
		name := fmt.Sprintf("dispatcher-%d", n+1)
		p := &process{
			name: name, path: i.programs.dispatcher, dir: i.dir,
			env: []string{"OPENAI_API_KEY=chaos", "CALLFAN_ADMIN_TOKEN=" + adminToken},
		}
		host, err := i.net.place(p)
		if err != nil {
			return err
		}
		admin := at(host, listen[n])
		i.admins = append(i.admins, "http://"+admin)
		args := []string{
			"--nats", i.natsURL, "--replicas", "3", "--partitions", strconv.Itoa(partitions), "--ack-wait", ackWait.String(),
			"--redis", "redis://" + i.sentinelAddr + "/0?master_name=" + masterName, "--redis-mode", "sentinel",
			"--openai-base-url", apiURL, "--openai-project", name, "--select", "metadata.chaos=yes", "--poll-interval", "2s",
			"--lease-ttl", leaseTTL.String(), "--listen", admin, "--log-format", "json", "--log-level", "debug",
		}
		if n == 0 { // the others draw a new name at each start
			args = append(args, "--name", name)
		}
		p.args = args
		i.dispatchers = append(i.dispatchers, p)
	}
	for n := range executors {
		name := fmt.Sprintf("executor-%d", n+1)
		p := &process{
			name: name, path: i.programs.executor, dir: i.dir,
			env: []string{"NATS_URL=" + i.natsURL, "CHAOS_NAME=" + name, "CHAOS_EFFECTS=" + i.effectsDir()},
		}
		if _, err := i.net.place(p); err != nil {
			return err
		}
		i.executors = append(i.executors, p)
	}
	return startAll(append(i.dispatchers[:dispatchers:dispatchers], i.executors...))
}

// stop ends all processes, those first that work with others.
func (i *installation) stop() {
	for _, group := range [][]*process{i.executors, i.dispatchers, {i.sentinel}, i.redis, i.nats} {
		var stopping sync.WaitGroup
		for _, p := range group {
			if p != nil {
				stopping.Go(func() { p.terminate(10 * time.Second) })
			}
		}
		stopping.Wait()
	}
	if i.conn != nil {
		i.conn.Close()
	}
}

// exits counts how often processes ended by themselves.
func (i *installation) exits() map[string]int {
	counts := map[string]int{}
	for _, p := range i.all() {
		p.mu.Lock()
		if p.gaveUp > 0 {
			counts[p.name] = p.gaveUp
		}
		p.mu.Unlock()
	}
	return counts
}

func startAll(all []*process) error {
	for _, p := range all {
		if err := p.start(); err != nil {
			return err
		}
	}
	return nil
}

// heal lets frozen processes go on and starts those that are down.
func (i *installation) heal() error {
	for _, p := range i.all() {
		resume(p)
		if p.host != "" {
			if err := cut(p.host, false); err != nil {
				return err
			}
		}
	}
	return startAll(i.all())
}

// natsLeader is the server that leads a stream.
func (i *installation) natsLeader(ctx context.Context, stream string) *process {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	s, err := i.js.Stream(ctx, stream)
	if err != nil || s.CachedInfo().Cluster == nil {
		return nil
	}
	for _, p := range i.nats {
		if p.name == s.CachedInfo().Cluster.Leader {
			return p
		}
	}
	return nil
}

// natsWhole says whether every stream has a leader and two replicas that are up to date.
func (i *installation) natsWhole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	list := i.js.ListStreams(ctx)
	n := 0
	for s := range list.Info() {
		n++
		if s.Cluster == nil || s.Cluster.Leader == "" {
			return fmt.Errorf("stream %s has no leader", s.Config.Name)
		}
		for _, r := range s.Cluster.Replicas {
			if !r.Current || r.Offline {
				return fmt.Errorf("stream %s: %s is behind", s.Config.Name, r.Name)
			}
		}
	}
	if err := list.Err(); err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("no streams")
	}
	return nil
}

// redisMaster asks Sentinel which node is the master.
func (i *installation) redisMaster(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	client := redis.NewSentinelClient(&redis.Options{Addr: i.sentinelAddr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer client.Close()
	addr, err := client.GetMasterAddrByName(ctx, masterName).Result()
	if err != nil {
		return 0, err
	}
	for n, a := range i.redisAddrs {
		if a == net.JoinHostPort(addr[0], addr[1]) {
			return n, nil
		}
	}
	return 0, fmt.Errorf("sentinel names %v", addr)
}

func (i *installation) redisClient(n int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: i.redisAddrs[n], MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true})
}

// redisWhole says whether the master that Sentinel names has a replica in step with it.
func (i *installation) redisWhole(ctx context.Context) error {
	master, err := i.redisMaster(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for n := range i.redisAddrs {
		client := i.redisClient(n)
		info, err := client.Info(ctx, "replication").Result()
		_ = client.Close()
		switch {
		case err != nil:
			return err
		case n == master && !(strings.Contains(info, "role:master") && strings.Contains(info, "state=online")):
			return fmt.Errorf("the master has no replica")
		case n != master && !strings.Contains(info, "master_link_status:up"):
			return fmt.Errorf("the replica is not linked")
		}
	}
	return nil
}

// until tries f every 100 ms until it is content, the time is over or ctx ends.
func until(ctx context.Context, patience time.Duration, what string, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := f()
		if err == nil {
			return nil
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return fmt.Errorf("%s within %s: %w", what, patience, err)
		}
	}
}

// sleep waits; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// ports are free ports of loopback below the range from which the system hands ports out, so that a server that is
// down for a while finds its port free.
func ports(n int) []string {
	var found []string
	for len(found) < n {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(10000+rand.IntN(9000))) //nolint:gosec // a port
		listener, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		_ = listener.Close()
		found = append(found, port(addr))
	}
	return found
}

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }
