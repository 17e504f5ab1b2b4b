package models

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/simulate/apiserver"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// jobs is the controller of Jobs: one is complete once its time has passed.
type jobs struct {
	*world.World

	readiness world.Readiness
	lacking   map[types.NamespacedName]bool
}

// Wakes implements [world.Actor].
func (c *jobs) Wakes(_, after client.Object) []types.NamespacedName {
	switch o := after.(type) {
	case *batchv1.Job:
		return []types.NamespacedName{client.ObjectKeyFromObject(o)}
	case *corev1.ConfigMap, *corev1.Secret:
		var keys []types.NamespacedName
		for key := range c.lacking {
			keys = append(keys, key)
		}
		return keys
	default:
		return nil
	}
}

// Act implements [world.Actor].
func (c *jobs) Act(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	job, ok := c.Store.Object(&batchv1.Job{}, key).(*batchv1.Job)
	if !ok || len(job.Status.Conditions) > 0 {
		return 0, nil
	}
	lacks, err := content.Lacks(ctx, c.Store, job.Namespace, &job.Spec.Template.Spec)
	if err != nil {
		return 0, err
	}
	c.lacking[key] = len(lacks) > 0
	takes := c.ReadyIn(c.readiness, "job", job.Name, atTemplate(&job.Spec.Template))
	if len(lacks) > 0 || takes == world.Never {
		return 0, nil
	}
	if rest := job.CreationTimestamp.Add(takes).Sub(c.Now); rest > 0 {
		return rest, nil
	}
	done, now := job.DeepCopy(), metav1.NewTime(c.Now)
	done.Status = batchv1.JobStatus{StartTime: &job.CreationTimestamp, CompletionTime: &now, Succeeded: 1}
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		done.Status.Conditions = append(done.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now,
		})
	}
	return 0, c.WriteStatus(ctx, done)
}

// providers give what is asked for immediately: volumes, load balancers, budgets, kinds.
type providers struct{ *world.World }

// Wakes implements [world.Actor].
func (c providers) Wakes(_, after client.Object) []types.NamespacedName {
	switch after.(type) {
	case *corev1.PersistentVolumeClaim, *corev1.Service, *policyv1.PodDisruptionBudget:
		return []types.NamespacedName{client.ObjectKeyFromObject(after)}
	case *unstructured.Unstructured:
		if apiserver.IsDefinition(after.GetObjectKind().GroupVersionKind().GroupKind()) {
			return []types.NamespacedName{client.ObjectKeyFromObject(after)}
		}
	}
	return nil
}

// Act implements [world.Actor].
func (c providers) Act(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	for _, kind := range []client.Object{&corev1.PersistentVolumeClaim{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}, definition()} {
		obj := c.Store.Object(kind, key)
		if obj == nil {
			continue
		}
		given, ok := obj.DeepCopyObject().(client.Object)
		if !ok {
			continue
		}
		give(given)
		if err := c.WriteStatus(ctx, given); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// definition is an empty CustomResourceDefinition.
func definition() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("apiextensions.k8s.io/v1")
	u.SetKind("CustomResourceDefinition")
	return u
}

func give(obj client.Object) {
	switch o := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		o.Status.Phase = corev1.ClaimBound
	case *corev1.Service:
		if o.Spec.Type == corev1.ServiceTypeLoadBalancer {
			o.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "simulated"}}
		}
	case *policyv1.PodDisruptionBudget:
		o.Status.ObservedGeneration = o.Generation
	case *unstructured.Unstructured:
		o.Object["status"] = map[string]any{"conditions": []any{
			map[string]any{"type": "NamesAccepted", "status": "True"}, map[string]any{"type": "Established", "status": "True"},
		}}
	}
}
