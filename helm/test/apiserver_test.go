package test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// apiServer is a real kube-apiserver with its etcd, and nothing else: no controllers, no nodes. All tests share one.
type apiServer struct {
	config     *rest.Config
	kubeconfig string
	warnings   *warnings
	stop       func()
}

var shared struct {
	sync.Once
	server *apiServer
	err    error
}

func TestMain(m *testing.M) {
	if code, is := runAsTool(); is {
		os.Exit(code)
	}
	code := m.Run()
	if shared.server != nil {
		shared.server.stop()
	}
	removePrograms()
	os.Exit(code)
}

// kubernetes starts the API server at the first call.
func kubernetes(t *testing.T) *apiServer {
	t.Helper()
	shared.Do(func() { shared.server, shared.err = startAPIServer() })
	require.NoError(t, shared.err)
	return shared.server
}

// apiServerBinary is where `make deps-helm` puts it.
func apiServerBinary() (string, error) {
	mod, err := os.ReadFile("../../tools/kube/go.mod")
	if err != nil {
		return "", err
	}
	version := regexp.MustCompile(`k8s\.io/kubernetes (v\S+)`).FindSubmatch(mod)
	if version == nil {
		return "", errors.New("tools/kube/go.mod does not require k8s.io/kubernetes")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "callfan", "kube-apiserver-"+string(version[1]))
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the API server is not built; remedy: make deps-helm: %w", err)
	}
	return path, nil
}

const adminToken = "admin-of-the-tests"

// startAPIServer takes a few seconds.
func startAPIServer() (_ *apiServer, err error) {
	binary, err := apiServerBinary()
	if err != nil {
		return nil, err
	}
	etcd, err := exec.LookPath("etcd")
	if err != nil {
		return nil, fmt.Errorf("etcd is missing; remedy: make deps-helm, or apt-get install etcd-server: %w", err)
	}
	dir, err := os.MkdirTemp("", "callfan-kube-")
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	var running []*process
	stop := func() {
		for _, p := range slices.Backward(running) { // the API server first; a dying etcd hangs it
			p.stop()
		}
		_ = os.RemoveAll(dir)
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	start := func(name string, args ...string) error {
		p, err := startProcess(filepath.Join(dir, filepath.Base(name)+".log"), name, args...)
		if err == nil {
			running = append(running, p)
		}
		return err
	}
	client, peer := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	if err := start(etcd, "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer); err != nil {
		return nil, err
	}
	if err := writeServiceAccountKey(dir); err != nil {
		return nil, err
	}
	tokens := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte(adminToken+`,admin,1,"system:masters"`+"\n"), 0o600); err != nil {
		return nil, err
	}
	// Without controllers nobody makes the default service accounts that the ServiceAccount plugin waits for.
	if err := start(binary, "--etcd-servers", client, "--bind-address", "127.0.0.1", "--secure-port", ports[2], "--cert-dir", filepath.Join(dir, "certs"),
		"--endpoint-reconciler-type", "none", "--service-cluster-ip-range", "10.0.0.0/24", "--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", filepath.Join(dir, "sa.pub"), "--service-account-signing-key-file", filepath.Join(dir, "sa.key"),
		"--token-auth-file", tokens, "--authorization-mode", "RBAC", "--shutdown-delay-duration", "0s", "--disable-admission-plugins", "ServiceAccount"); err != nil {
		return nil, err
	}
	host := "https://127.0.0.1:" + ports[2]
	kubeconfig := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: %s}}]}`, host, adminToken)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		return nil, err
	}
	seen := &warnings{}
	rest.SetDefaultWarningHandler(seen)
	server := &apiServer{
		config:     &rest.Config{Host: host, BearerToken: adminToken, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1, WarningHandler: seen},
		kubeconfig: kubeconfig, warnings: seen, stop: stop,
	}
	return server, server.awaitReady(running)
}

func (s *apiServer) awaitReady(running []*process) error {
	client, err := rest.HTTPClientFor(s.config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.config.Host+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		if resp, err := client.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		for _, p := range running {
			select {
			case <-p.ended:
				return fmt.Errorf("%s ended: %s", p.name, p.tail())
			default:
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the API server is not ready: %s", running[len(running)-1].tail())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func writeServiceAccountKey(dir string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "sa.key"), pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600),
		os.WriteFile(filepath.Join(dir, "sa.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600),
	)
}

// freePorts of loopback.
func freePorts(n int) (ports []string, err error) {
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens at once
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// process is a server that ends with the tests.
type process struct {
	name, log string
	cmd       *exec.Cmd
	ended     chan struct{}
}

func startProcess(log, name string, args ...string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(name, args...) //nolint:noctx // it is stopped by signals, in order
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{name: filepath.Base(name), log: log, cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		defer out.Close()
		_ = cmd.Wait()
	}()
	return p, nil
}

// stop waits until the process has ended.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

func (p *process) tail() string {
	text, _ := os.ReadFile(p.log)
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-5):], []byte("\n")))
}

// warnings are what the API server warned of.
type warnings struct {
	mu   sync.Mutex
	seen []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, text)
}

// of are those with the text in them.
func (w *warnings) of(text string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.seen), func(s string) bool { return !strings.Contains(s, text) })
}
