package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// The modules whose files describe what Kubernetes and its extensions take. They are downloaded, not linked.
const (
	kedaModule       = "github.com/kedacore/keda/v2@v2.21.0"
	prometheusModule = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
)

// kubernetesModules are three minor versions, the newest of which is the API server's.
var kubernetesModules = []string{"k8s.io/kubernetes@v1.35.4", "k8s.io/kubernetes@v1.36.3", "k8s.io/kubernetes@v1.37.2"}

// moduleDir is where a module is, after a download if need be.
func moduleDir(module string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", module).Output()
	var answer struct{ Dir, Error string }
	if decoded := json.Unmarshal(out, &answer); decoded != nil {
		return "", errors.Join(err, decoded)
	}
	if answer.Error != "" || answer.Dir == "" {
		return "", fmt.Errorf("download %s: %s", module, answer.Error)
	}
	return answer.Dir, nil
}

// definitionFiles are the definitions of the custom resources that the chart makes.
var definitionFiles = sync.OnceValues(func() ([]string, error) {
	keda, err := moduleDir(kedaModule)
	if err != nil {
		return nil, err
	}
	prometheus, err := moduleDir(prometheusModule)
	if err != nil {
		return nil, err
	}
	crds := filepath.Join(prometheus, "example/prometheus-operator-crd/monitoring.coreos.com_")
	return []string{filepath.Join(keda, "config/crd/bases/keda.sh_scaledobjects.yaml"), crds + "podmonitors.yaml", crds + "servicemonitors.yaml", crds + "prometheusrules.yaml"}, nil
})
