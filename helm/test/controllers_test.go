package test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// playControllers has Deployments of the namespaces become available and Jobs complete, until the test ends, as if
// there were controllers and nodes.
func (c *cluster) playControllers(t *testing.T, namespaces []string) {
	t.Helper()
	stop, stopped := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-stopped })
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
			}
			// Conflicts and the like are mended by the next round.
			if list, err := c.client.AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{}); err == nil {
				for i := range list.Items {
					if slices.Contains(namespaces, list.Items[i].Namespace) {
						c.makeAvailable(t, &list.Items[i])
					}
				}
			}
			if list, err := c.client.BatchV1().Jobs("").List(t.Context(), metav1.ListOptions{}); err == nil {
				for i := range list.Items {
					if slices.Contains(namespaces, list.Items[i].Namespace) {
						c.complete(t, &list.Items[i])
					}
				}
			}
		}
	}()
}

func (c *cluster) makeAvailable(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	if d.Status.ObservedGeneration == d.Generation {
		return
	}
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	_, _ = c.client.AppsV1().Deployments(d.Namespace).UpdateStatus(t.Context(), d, metav1.UpdateOptions{})
}

func (c *cluster) complete(t *testing.T, j *batchv1.Job) {
	t.Helper()
	if len(j.Status.Conditions) > 0 {
		return
	}
	now := metav1.Now()
	j.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue}, {Type: batchv1.JobComplete, Status: corev1.ConditionTrue},
	}}
	_, _ = c.client.BatchV1().Jobs(j.Namespace).UpdateStatus(t.Context(), j, metav1.UpdateOptions{})
}
