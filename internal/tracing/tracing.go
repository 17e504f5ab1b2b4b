package tracing

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/notify/subject"
	"github.com/spillway-dev/spillway/internal/tracing/span"
	"github.com/spillway-dev/spillway/internal/zones/replica"
)

// again is how long before a manager leads something ended that it writes: the manager before
// it may not have sent it.
const again = 10 * time.Minute

// Options are the choices of the user who runs the manager.
type Options struct {
	// Receiver is the URL to which traces are sent; if it is empty, none are.
	Receiver string
	// Now is the clock.
	Now func() time.Time
	// Rings are those that run, and Namespaces those that are watched, all if empty. The
	// manager sets them.
	Rings, Namespaces []string
}

// Setup adds to a manager what writes traces while it leads, unless there is no receiver.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Receiver == "" {
		return nil
	}
	w := &writer{now: o.Now, cached: mgr.GetClient(), log: mgr.GetLogger().WithName("traces")}
	var err error
	if w.exporter, err = newExporter(ctx, o.Receiver, w.log); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(w.exporter.run)); err != nil {
		return fmt.Errorf("add the exporter: %w", err)
	}
	for _, k := range subject.KindsOf(o.Rings, o.Namespaces) {
		needed := kube.Needed{
			Ring: "traces", Called: "the kind " + k.Name + " is", Without: "no trace is written about objects of a kind",
			Action: "apply what \"spillway install --export\" prints", Kinds: []schema.GroupVersionKind{k.Group.WithKind(k.Name)}, IsOptional: true,
		}
		watch := manager.RunnableFunc(func(ctx context.Context) error { return w.watch(ctx, mgr, k.Object) })
		if err := needed.Start(ctx, mgr, func(context.Context) error { return mgr.Add(watch) }); err != nil {
			return err
		}
	}
	return nil
}

// writer writes what has ended in the objects of the cache.
type writer struct {
	now      func() time.Time
	cached   client.Reader
	exporter *exporter
	log      logr.Logger
}

// watch compares the states of the objects of a kind until the context ends. It begins with
// all that exist.
func (w *writer) watch(ctx context.Context, mgr ctrl.Manager, kind client.Object) error {
	informer, err := mgr.GetCache().GetInformer(ctx, kind)
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the manager stops
		}
		return fmt.Errorf("watch %T: %w", kind, err)
	}
	since := w.now().Add(-again)
	handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(is any) { w.compare(ctx, nil, is, since) },
		UpdateFunc: func(was, is any) { w.compare(ctx, was, is, since) },
		DeleteFunc: func(was any) {
			if unknown, ok := was.(toolscache.DeletedFinalStateUnknown); ok {
				was = unknown.Obj
			}
			w.compare(ctx, was, nil, since)
		},
	})
	if err != nil {
		return fmt.Errorf("watch %T: %w", kind, err)
	}
	<-ctx.Done()
	if err := informer.RemoveEventHandler(handler); err != nil {
		return fmt.Errorf("end the watch of %T: %w", kind, err)
	}
	return nil
}

// compare writes what has ended between two states.
func (w *writer) compare(ctx context.Context, was, is any, since time.Time) {
	before, _ := was.(client.Object) // nil if there is none
	after, _ := is.(client.Object)
	if before != nil && after != nil && before.GetResourceVersion() == after.GetResourceVersion() {
		return
	}
	for _, s := range span.Ended(before, after, w.now()) {
		if s.End.Before(since) {
			continue
		}
		w.exporter.write(ctx, s)
		if _, isGroup := after.(*v1alpha1.RolloutGroup); isGroup && s.Kind == span.KindZone {
			w.exporter.write(ctx, w.pods(ctx, &s)...)
		}
	}
}

// pods are the Pods of a zone that began while it was updated: from their creation until they
// were ready.
func (w *writer) pods(ctx context.Context, zone *span.Span) []span.Span {
	list := &corev1.PodList{}
	if err := w.cached.List(ctx, list, client.InNamespace(zone.Object.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		w.log.Error(err, "list the Pods of a zone")
		return nil
	}
	var pods []span.Span
	for i := range list.Items {
		p := &list.Items[i]
		owner := metav1.GetControllerOf(p)
		ready, isReady := replica.ReadySince(p)
		began := p.CreationTimestamp.Time // in whole seconds
		if owner == nil || owner.Name != zone.Name || !isReady || began.Before(zone.Start.Truncate(time.Second)) {
			continue
		}
		pods = append(pods, zone.Part(span.KindPod, p.Name, string(p.UID), began, ready))
	}
	return pods
}
