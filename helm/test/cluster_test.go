package test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// cluster is a namespace at the API server that takes restricted pods only.
type cluster struct {
	*apiServer
	namespace string
	client    *clientset.Clientset
	objects   *dynamic.DynamicClient
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	helm      *action.Configuration
}

// prepared makes what the objects of the chart need of a cluster once: definitions of KEDA and of the Prometheus operator.
var prepared = sync.OnceValue(func() error {
	s := shared.server
	objects, err := dynamic.NewForConfig(s.config)
	if err != nil {
		return err
	}
	crds := objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	paths, err := definitionFiles()
	if err != nil {
		return err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		body, err := yaml.YAMLToJSON(text)
		if err != nil {
			return err
		}
		if _, err := crds.Patch(context.Background(), nameOf(body), types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "tests"}); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	runtimes := objects.Resource(schema.GroupVersionResource{Group: "node.k8s.io", Version: "v1", Resource: "runtimeclasses"})
	gvisor := []byte(`{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "gvisor"}, "handler": "runsc"}`)
	_, err = runtimes.Patch(context.Background(), "gvisor", types.ApplyPatchType, gvisor, metav1.PatchOptions{FieldManager: "tests"})
	return err
})

func nameOf(body []byte) string {
	var head struct{ Metadata struct{ Name string } }
	_ = json.Unmarshal(body, &head)
	return head.Metadata.Name
}

func newCluster(t *testing.T, name string) *cluster {
	t.Helper()
	c := &cluster{apiServer: kubernetes(t), namespace: name}
	require.NoError(t, prepared())
	var err error
	c.client, err = clientset.NewForConfig(c.config)
	require.NoError(t, err)
	c.objects, err = dynamic.NewForConfig(c.config)
	require.NoError(t, err)
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.client.Discovery()))
	_, err = c.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   name,
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	settings := cli.New()
	settings.KubeConfig, settings.QPS, settings.BurstLimit = c.kubeconfig, 1000, 1000
	settings.SetNamespace(name)
	c.helm = action.NewConfiguration()
	require.NoError(t, c.helm.Init(settings.RESTClientGetter(), name, "secret"))
	// The definitions are there a moment after they were made.
	require.Eventually(t, func() bool {
		c.mapper.Reset()
		_, err := c.mapper.RESTMapping(schema.GroupKind{Group: "keda.sh", Kind: "ScaledObject"}, "v1alpha1")
		_, err2 := c.mapper.RESTMapping(schema.GroupKind{Group: "monitoring.coreos.com", Kind: "PrometheusRule"}, "v1")
		return err == nil && err2 == nil
	}, 30*time.Second, 100*time.Millisecond)
	return c
}

func (c *cluster) install(loaded *chart.Chart, v values) error {
	install := action.NewInstall(c.helm)
	install.ReleaseName, install.Namespace = release, c.namespace
	install.WaitStrategy, install.Timeout = kube.HookOnlyStrategy, time.Minute
	_, err := install.Run(loaded, v)
	return err
}

func (c *cluster) upgrade(loaded *chart.Chart, v values) error {
	upgrade := action.NewUpgrade(c.helm)
	upgrade.Namespace, upgrade.ServerSideApply = c.namespace, "auto"
	upgrade.WaitStrategy, upgrade.Timeout = kube.HookOnlyStrategy, time.Minute
	_, err := upgrade.Run(release, loaded, v)
	return err
}

func (c *cluster) rollback() error {
	rollback := action.NewRollback(c.helm)
	rollback.ServerSideApply, rollback.WaitStrategy, rollback.Timeout = "auto", kube.HookOnlyStrategy, time.Minute
	return rollback.Run(release)
}

func (c *cluster) uninstall() error {
	uninstall := action.NewUninstall(c.helm)
	uninstall.WaitStrategy, uninstall.Timeout = kube.HookOnlyStrategy, time.Minute
	_, err := uninstall.Run(release)
	return err
}

// freshChart is a copy for one action, since Helm changes what it is given.
func freshChart(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := loader.Load(chartDir)
	require.NoError(t, err)
	return loaded
}

// live lists the objects of the release that are at the API server, without those of other fields than their names.
func (c *cluster) live(t *testing.T) (found []string) {
	t.Helper()
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "ServiceAccount"},
		{Version: "v1", Kind: "ConfigMap"},
		{Version: "v1", Kind: "Service"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "batch", Version: "v1", Kind: "Job"},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
		{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
		{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"},
		{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"},
		{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"},
		{Group: "monitoring.coreos.com", Version: "v1", Kind: "PrometheusRule"},
	} {
		mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		require.NoError(t, err)
		list, err := c.objects.Resource(mapping.Resource).Namespace(c.namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, item := range list.Items {
			found = append(found, item.GetKind()+" "+item.GetName())
		}
	}
	return found
}

func (c *cluster) deployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	d, err := c.client.AppsV1().Deployments(c.namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return d
}

// dryRun has the API server judge an object as if it were applied.
func (c *cluster) dryRun(ctx context.Context, body map[string]any) error {
	o := &unstructured.Unstructured{Object: body}
	kind := o.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	o.SetNamespace(c.namespace)
	_, err = c.objects.Resource(mapping.Resource).Namespace(c.namespace).Apply(ctx, o.GetName(), o,
		metav1.ApplyOptions{FieldManager: "tests", DryRun: []string{metav1.DryRunAll}, Force: true})
	return err
}
