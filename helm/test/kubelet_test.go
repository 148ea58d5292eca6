package test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/callfan/callfan/internal/programtest"
)

// kubelet runs the containers of a release as processes: the program of the image with the arguments and the environment
// that the pod's spec states, and the files that it mounts. Paths of mounts are moved into a directory, and names that
// only a cluster knows are replaced by addresses of this machine; nothing else is changed.
type kubelet struct {
	programs string
	release  objects
	// secrets are those that exist in the namespace, by name and key.
	secrets map[string]map[string]string
	// hosts are what names lead to, as host:port each.
	hosts map[string]string
}

// built are callfan's programs, as `make build` makes them.
var built = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "callfan-programs-"); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", dir+"/", "./cmd/...") //nolint:noctx // TestMain has no context
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("%w: %s", err, out)
	}
	return dir, nil
})

// buildPrograms builds them at the first call.
func buildPrograms(t *testing.T) (dir string) {
	t.Helper()
	programsWanted.Store(true)
	dir, err := built()
	require.NoError(t, err)
	return dir
}

var programsWanted atomic.Bool

// removePrograms deletes what was built.
func removePrograms() {
	if programsWanted.Load() {
		dir, _ := built()
		_ = os.RemoveAll(dir)
	}
}

// container is one that runs.
type container struct {
	*programtest.Process
	spec corev1.Container
	pod  corev1.PodSpec
}

// start starts the only container of a component's pod.
func (k *kubelet) start(t *testing.T, component string) *container {
	t.Helper()
	pod := podSpecs(t, k.release)[component]
	require.Len(t, pod.Containers, 1, component)
	c := pod.Containers[0]
	require.Empty(t, c.Command, "the image's entrypoint")
	image, _, _ := strings.Cut(filepath.Base(c.Image), ":")
	root := t.TempDir()
	moved := k.mount(t, pod, c, root)
	command := programtest.Command{Path: filepath.Join(k.programs, image), Dir: root}
	for _, arg := range c.Args {
		command.Args = append(command.Args, moved.Replace(arg))
	}
	for _, variable := range c.Env {
		command.Env = append(command.Env, variable.Name+"="+moved.Replace(k.value(t, component, variable)))
	}
	return &container{Process: programtest.Start(t, command), spec: c, pod: pod}
}

// value is what a variable is set to.
func (k *kubelet) value(t *testing.T, component string, variable corev1.EnvVar) string {
	t.Helper()
	from := variable.ValueFrom
	switch {
	case from == nil:
		return variable.Value
	case from.SecretKeyRef != nil:
		return k.secret(t, from.SecretKeyRef.Name, from.SecretKeyRef.Key)
	case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.name":
		return component + "-7d9f8-x2x4z"
	}
	require.Fail(t, "the kubelet of the tests does not know where the variable comes from", "%+v", variable)
	return ""
}

func (k *kubelet) secret(t *testing.T, name, key string) string {
	t.Helper()
	require.Contains(t, k.secrets, name, "a Secret")
	require.Contains(t, k.secrets[name], key, "a key of the Secret %s", name)
	return k.secrets[name][key]
}

// mount lays out the volumes and returns what has to be replaced in texts.
func (k *kubelet) mount(t *testing.T, pod corev1.PodSpec, c corev1.Container, root string) *strings.Replacer {
	t.Helper()
	var hosts []string
	for name, address := range k.hosts {
		hosts = append(hosts, name, address)
	}
	files := map[string]map[string]string{}
	for _, volume := range pod.Volumes {
		files[volume.Name] = k.files(t, volume)
	}
	moved := hosts
	for _, mount := range c.VolumeMounts {
		require.Contains(t, files, mount.Name, "a volume")
		dir := filepath.Join(root, mount.MountPath)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		for name, text := range files[mount.Name] {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.NewReplacer(hosts...).Replace(text)), 0o440))
		}
		if mount.ReadOnly {
			moved = append(moved, mount.MountPath, dir)
		}
	}
	return strings.NewReplacer(moved...)
}

// files are those of a volume.
func (k *kubelet) files(t *testing.T, volume corev1.Volume) map[string]string {
	t.Helper()
	switch {
	case volume.EmptyDir != nil:
		return map[string]string{}
	case volume.ConfigMap != nil:
		for _, o := range k.release.of("ConfigMap") {
			if o.Name == volume.ConfigMap.Name {
				return typed[corev1.ConfigMap](t, o).Data
			}
		}
	case volume.Projected != nil:
		files := map[string]string{}
		for _, source := range volume.Projected.Sources {
			for _, item := range source.Secret.Items {
				files[item.Path] = k.secret(t, source.Secret.Name, item.Key)
			}
		}
		return files
	}
	require.Fail(t, "there is no such volume", "%+v", volume)
	return nil
}

// probe waits until the probes succeed, for as long as the startup probe allows.
func (c *container) probe(t *testing.T) {
	t.Helper()
	startup := c.spec.StartupProbe
	for _, probe := range []*corev1.Probe{startup, c.spec.LivenessProbe, c.spec.ReadinessProbe} {
		patience := time.Duration(startup.PeriodSeconds*startup.FailureThreshold) * time.Second
		require.Eventually(t, func() bool { return c.get(probe) == http.StatusOK || !c.Running() }, patience, 20*time.Millisecond, "%s\n%s", probe.HTTPGet.Path, c.Stderr)
		require.True(t, c.Running(), "%s", c.Stderr)
	}
}

// get is the status that a probe is answered with; zero when there is none.
func (c *container) get(probe *corev1.Probe) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(probe.TimeoutSeconds)*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.address(probe.HTTPGet.Port.StrVal)+probe.HTTPGet.Path, http.NoBody)
	if err != nil {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// address is that of a port.
func (c *container) address(port string) string {
	for _, p := range c.spec.Ports {
		if p.Name == port {
			return fmt.Sprintf("127.0.0.1:%d", p.ContainerPort)
		}
	}
	return "no port " + port
}

// terminate does as Kubernetes at the end of a pod: SIGTERM once the preStop sleep is over, and what is left of the grace
// period to end in.
func (c *container) terminate(t *testing.T) {
	t.Helper()
	grace := time.Duration(*c.pod.TerminationGracePeriodSeconds) * time.Second
	if hook := c.spec.Lifecycle; hook != nil {
		grace -= time.Duration(hook.PreStop.Sleep.Seconds) * time.Second
	}
	started := time.Now()
	require.Zero(t, c.Stop(), "%s", c.Stderr)
	require.Less(t, time.Since(started), grace)
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
