package config

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pods"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/internal/kube"
)

// Watches only start a pass; the event itself is not used. The predicates leave
// out what cannot change the result of a pass.

// toRing maps every event to the only request.
func toRing() handler.EventHandler {
	request := []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "workloads"}}}
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return request })
}

// workloadMatters leaves out irrelevant workloads, and status updates by which a
// workload neither becomes ready nor stops being ready, nor fails, nor begins to have to make
// progress, nor tells how a release of it goes.
func workloadMatters(t *tracker) predicate.Predicate {
	p := predicate.NewPredicateFuncs(t.isRelevant)
	p.UpdateFunc = func(e event.UpdateEvent) bool {
		if !t.isRelevant(e.ObjectOld) && !t.isRelevant(e.ObjectNew) {
			return false
		}
		return kube.IsResync(e) || respecified(e.ObjectOld, e.ObjectNew) || becomes(e.ObjectOld, e.ObjectNew) ||
			keepsMore(e.ObjectOld, e.ObjectNew) || hasObservedRelease(e.ObjectOld, e.ObjectNew) || mayStall(e.ObjectOld, e.ObjectNew) ||
			workload.MayBeStuck(e.ObjectOld) != workload.MayBeStuck(e.ObjectNew) || isJudgedBy(e.ObjectOld, e.ObjectNew)
	}
	return p
}

// verdictsMatter leaves out updates of records that only say how far a content has come.
func verdictsMatter() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.ConfigRollout)
		now, isRecord := e.ObjectNew.(*v1alpha1.ConfigRollout)
		return !ok || !isRecord || !equality.Semantic.DeepEqual(before.Failures, now.Failures) || !equality.Semantic.DeepEqual(before.Adopted, now.Adopted)
	}}
}

func respecified(a, b client.Object) bool {
	return a.GetUID() != b.GetUID() || a.GetGeneration() != b.GetGeneration() ||
		!maps.Equal(a.GetAnnotations(), b.GetAnnotations()) || !slices.Equal(a.GetFinalizers(), b.GetFinalizers())
}

// hasObservedRelease is true when the controller of a released workload has
// observed the release; then its suspended Pods can be deleted.
func hasObservedRelease(a, b client.Object) bool {
	before, now := workload.SuspensionOf(a), workload.SuspensionOf(b)
	return now.Freeing && now.Seen && !before.Seen
}

// mayStall is true once it is known when a Deployment that makes no progress has failed: its
// controller has observed the roll. The pass after the roll came before that, and has set no
// clock for it.
func mayStall(a, b client.Object) bool {
	return workload.StallsAt(a).IsZero() && !workload.StallsAt(b).IsZero()
}

// isJudgedBy is true if Pods begin or cease to be refused, or if more or fewer are available of a workload
// that was not ready before its roll: whether a release goes on follows from that, and its Pods tell neither.
func isJudgedBy(a, b client.Object) bool {
	return workload.RefusedPods(a) != workload.RefusedPods(b) || workload.Available(a) != workload.Available(b) && workload.LastRoll(b).Unready
}

// keepsMore is true if more or fewer Pods than before run an earlier revision until a user
// replaces them.
func keepsMore(a, b client.Object) bool {
	before, _ := workload.Kept(a)
	now, _ := workload.Kept(b)
	return before != now
}

// becomes is true of a workload that becomes ready, unready or failed.
func becomes(a, b client.Object) bool {
	return workload.IsReady(a) != workload.IsReady(b) || health.Of(a, gvkOf(a)).Health != health.Of(b, gvkOf(b)).Health
}

func gvkOf(obj client.Object) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: workload.KindOf(obj)}
}

// objectMatters leaves out objects that no tracked workload uses, and updates
// that change no digest.
func objectMatters(ctx context.Context, workloads client.Reader, t *tracker) predicate.Predicate {
	p := predicate.NewPredicateFuncs(func(obj client.Object) bool { return isUsed(ctx, workloads, t, content.ObjectOf(obj)) })
	p.UpdateFunc = func(e event.UpdateEvent) bool {
		return (kube.IsResync(e) || content.Differ(e.ObjectOld, e.ObjectNew) || t.reloader.Differ(e.ObjectOld, e.ObjectNew)) && isUsed(ctx, workloads, t, content.ObjectOf(e.ObjectNew))
	}
	return p
}

// providedMatters leaves out what the driver has mounted for Pods of workloads
// that are not tracked.
func providedMatters(ctx context.Context, workloads client.Reader, t *tracker) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool { return isUsed(ctx, workloads, t, content.ObjectOf(obj)) })
}

// isUsed is true if a tracked workload uses the object, and when in doubt: what workloads use that policies or
// annotations of Reloader track is not indexed, as that changes with the policies and with the objects. They use
// what other namespaces share.
func isUsed(ctx context.Context, workloads client.Reader, t *tracker, o content.Object) bool {
	if t.policies().Tracks() || t.reloader != nil {
		return true
	}
	for _, kind := range workload.Kinds() {
		list := workload.NewList(kind)
		err := workloads.List(ctx, list, client.MatchingFields{usesIndex: o.From("")}, client.Limit(1), client.UnsafeDisableDeepCopy)
		if err != nil || meta.LenList(list) > 0 {
			return true
		}
	}
	return false
}

// indexUses lists the objects that a workload uses, for [usesIndex]: those to which it refers,
// and the snapshots of those.
func indexUses(obj client.Object) []string {
	m := workload.ManifestOf(obj)
	if !m.Tracked {
		return nil
	}
	used := map[string]bool{}
	for _, ref := range m.Uses {
		used[ref.Object.From("")] = true
	}
	for _, snapshot := range workload.SnapshotsOf(obj) {
		used[snapshot.From("")] = true
	}
	return slices.Collect(maps.Keys(used))
}

// watchPods returns a reader of Pods that starts a pass when it reads something else.
func watchPods(ctx context.Context, mgr ctrl.Manager, wake chan event.GenericEvent) (pods.Reader, error) {
	c, err := client.NewWithWatch(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("make a client that watches Pods: %w", err)
	}
	begin := func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }
	return pods.NewWatching(c, begin, func() {
		select {
		case wake <- event.GenericEvent{Object: &corev1.Pod{}}:
		default: // a pass follows already
		}
	}), nil
}
