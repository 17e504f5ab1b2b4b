package config

import (
	"context"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/rollout"
)

// Watches only wake the ring up. Which event it was is forgotten at once; what
// they leave out is what cannot change the outcome of a pass.

// toRing maps every event to the one request that there is.
func toRing() handler.EventHandler {
	request := []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "workloads"}}}
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return request })
}

// workloadMatters leaves out workloads out of sight, and status updates by
// which a workload neither begins nor ceases to be ready.
func workloadMatters() predicate.Predicate {
	p := predicate.NewPredicateFuncs(inSight)
	p.UpdateFunc = func(e event.UpdateEvent) bool {
		if !inSight(e.ObjectOld) && !inSight(e.ObjectNew) {
			return false
		}
		return kube.IsResync(e) || respecified(e.ObjectOld, e.ObjectNew) || ready(e.ObjectOld) != ready(e.ObjectNew) ||
			seenAtLast(e.ObjectOld, e.ObjectNew)
	}
	return p
}

func respecified(a, b client.Object) bool {
	return a.GetUID() != b.GetUID() || a.GetGeneration() != b.GetGeneration() ||
		!maps.Equal(a.GetAnnotations(), b.GetAnnotations()) || !slices.Equal(a.GetFinalizers(), b.GetFinalizers())
}

// seenAtLast is true when the controller of a released workload catches up, which
// is what freeing its Pods waits for.
func seenAtLast(a, b client.Object) bool {
	before, now := suspensionOf(a), suspensionOf(b)
	return now.Freeing && now.Seen && !before.Seen
}

func ready(obj client.Object) bool {
	return health.Of(obj, gvkOf(obj)).Health == rollout.Healthy
}

func gvkOf(obj client.Object) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kindOf(obj)}
}

// objectMatters leaves out objects that no tracked workload uses, and updates
// that change no digest.
func objectMatters(ctx context.Context, workloads client.Reader) predicate.Predicate {
	p := predicate.NewPredicateFuncs(func(obj client.Object) bool { return isUsed(ctx, workloads, objectOf(obj)) })
	p.UpdateFunc = func(e event.UpdateEvent) bool {
		return (kube.IsResync(e) || differs(e.ObjectOld, e.ObjectNew)) && isUsed(ctx, workloads, objectOf(e.ObjectNew))
	}
	return p
}

func differs(a, b client.Object) bool {
	before, after := factsOf(a), factsOf(b)
	before.version, after.version = string(a.GetUID()), string(b.GetUID())
	return !reflect.DeepEqual(before, after)
}

func objectOf(obj client.Object) Object {
	kind := ConfigMap
	if _, ok := obj.(*corev1.Secret); ok {
		kind = Secret
	}
	return Object{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// isUsed is true if a tracked workload uses the object, and when in doubt.
func isUsed(ctx context.Context, workloads client.Reader, o Object) bool {
	for kind := range workloadKinds {
		list := emptyWorkloads(kind)
		err := workloads.List(ctx, list, client.MatchingFields{usesIndex: o.From("")}, client.Limit(1), client.UnsafeDisableDeepCopy)
		if err != nil || meta.LenList(list) > 0 {
			return true
		}
	}
	return false
}

// providedMatters leaves out what the driver has mounted for Pods of workloads
// that are not tracked.
func providedMatters(ctx context.Context, workloads client.Reader) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		status, ok := obj.(*unstructured.Unstructured)
		return !ok || isUsed(ctx, workloads, Object{Kind: SecretProviderClass, Namespace: obj.GetNamespace(), Name: classOf(status)})
	})
}

// indexUses lists the objects that a workload uses, for [usesIndex].
func indexUses(obj client.Object) []string {
	s := settings(obj.GetNamespace(), obj.GetAnnotations())
	if !s.Tracked {
		return nil
	}
	var used []string
	for _, ref := range references(obj.GetNamespace(), &TemplateOf(obj).Spec, s.Extra, s.PullSecrets) {
		if key := ref.Object.From(""); !slices.Contains(used, key) {
			used = append(used, key)
		}
	}
	return used
}
