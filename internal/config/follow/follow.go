// Package follow reads what follows its config by annotations of Reloader and is not rolled by a hash: CronJobs
// and Rollouts of Argo. What counts, and since when, is the same for both.
//
// What was last acted upon is a record on the object itself. The first look records, and does nothing else.
package follow

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
)

// Options are the manager's choices.
type Options struct {
	Reloader *reloader.Options
	// Source reads config.
	Source content.Source
	// Window is for how long a change may be followed by another one.
	Window time.Duration
	Now    func() time.Time
}

// Permits reports whether the manager may list some kinds, and logs which value of the chart lets it if not.
func Permits(ctx context.Context, mgr ctrl.Manager, namespaces []string, value string, kinds ...client.ObjectList) (bool, error) {
	for _, namespace := range kube.OrAll(namespaces) {
		for _, list := range kinds {
			err := mgr.GetAPIReader().List(ctx, list, client.InNamespace(namespace), client.Limit(1))
			switch {
			case apierrors.IsForbidden(err):
				mgr.GetLogger().WithName("config").Error(err, "what follows its config is not watched; install with the value "+value)
				return false, nil
			case err != nil:
				return false, fmt.Errorf("list one of what follows its config: %w", err)
			}
		}
	}
	return true, nil
}

// Watch has a controller look at the objects of a list again when what counts for them changes.
func (o *Options) Watch(b *builder.Builder, reader client.Reader, list client.ObjectList) *builder.Builder {
	those := func(ctx context.Context, obj client.Object) []reconcile.Request {
		return o.requests(ctx, reader, list, obj.GetNamespace())
	}
	for _, obj := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}} {
		b = b.Watches(obj, handler.EnqueueRequestsFromMapFunc(those), builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			return content.Differ(e.ObjectOld, e.ObjectNew) || o.Reloader.Differ(e.ObjectOld, e.ObjectNew)
		}}))
	}
	if o.Reloader.Namespaces == nil {
		return b
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return b.Watches(namespace, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		o.Reloader.Namespaces.Learn(o.Now(), obj.GetName(), obj.GetLabels())
		return o.requests(ctx, reader, list, obj.GetName())
	}))
}

// requests are for the objects of a namespace that follow their config.
func (o *Options) requests(ctx context.Context, reader client.Reader, of client.ObjectList, namespace string) (requests []reconcile.Request) {
	list, _ := of.DeepCopyObject().(client.ObjectList)
	if err := reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has not started; it delivers all of them then
	}
	_ = apimeta.EachListItem(list, func(item runtime.Object) error { // it returns none
		if obj, ok := item.(client.Object); ok && workload.ReadRun(obj, o.Reloader) != nil {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
		}
		return nil
	})
	return requests
}

// Config is what is known of the config of an object that follows it.
type Config struct {
	Now time.Time
	// Record is that on the object, empty if there is none, and Next that of what counts now.
	Record, Next string
	// IsRecorded is true if the record is of what counts now.
	IsRecorded bool
	// Changed are the objects to act for, and Settled is when they may not be followed by others any more.
	Changed []content.Object
	Settled time.Time
	// IsMissed is true if Reloader has acted for another content than there is now.
	IsMissed bool
	// IsPaused is true if a user has paused the object, or something that has changed.
	IsPaused bool
	// Missing is what Pods could not start without.
	Missing []content.Missing
}

// Again is when a pass is to be followed by another one: at a time, zero for none, or after an error of its write.
func (c *Config) Again(wake time.Time, err error) (reconcile.Result, error) {
	switch {
	case apierrors.IsAlreadyExists(err): // by an earlier pass, or another client: the wait grows
		return reconcile.Result{}, err
	case ring.IsConflict(err):
		return reconcile.Result{RequeueAfter: ring.AfterConflict}, nil
	case err == nil && !wake.IsZero():
		return reconcile.Result{RequeueAfter: max(wake.Sub(c.Now), 1)}, nil
	default:
		return reconcile.Result{}, err
	}
}

// Reader reads the config of objects. It is for one caller at a time.
type Reader struct {
	options Options
	// first is when a change was seen first, of objects of which it may be followed by another one.
	first map[client.ObjectKey]change
}

// change is what an object is to be acted upon for, and since when it is that.
type change struct {
	contents string
	since    time.Time
}

// NewReader returns a reader that has seen no change.
func NewReader(o Options) *Reader {
	return &Reader{options: o, first: map[client.ObjectKey]change{}}
}

// Forget drops what is known of an object that is gone.
func (r *Reader) Forget(name client.ObjectKey) { delete(r.first, name) }

// Read reads the config of an object, nil if it does not follow it.
func (r *Reader) Read(ctx context.Context, obj client.Object) (*Config, error) {
	w := workload.ReadRun(obj, r.options.Reloader)
	if w == nil {
		return nil, nil //nolint:nilnil // there is none to follow
	}
	objects, unlisted, err := workload.ListObjects(ctx, &r.options.Source, r.options.Reloader, w.Namespace)
	if err != nil {
		return nil, err
	}
	known := &content.Known{}
	if _, err := r.options.Source.Lookup().Observe(ctx, known, "", w.Reloaded.DemandIn(w.Demand, objects, unlisted)); err != nil {
		return nil, fmt.Errorf("read the config of %s %s: %w", w.Kind, w.Name, err)
	}
	w.Observe(known)
	c := &Config{
		Now: r.options.Now(), Record: w.RunRecord(), IsRecorded: w.IsRunRecorded(), Changed: w.RunFor(),
		IsMissed: w.MissedRun(), IsPaused: w.IsRunPaused(), Missing: w.Missing,
	}
	c.Next, c.Settled = w.NextRunRecord(c.Now), r.settles(client.ObjectKeyFromObject(obj), w, c)
	return c, nil
}

// settles is when what has changed may be acted for: a change that is seen first may be followed by others.
func (r *Reader) settles(name client.ObjectKey, w *workload.Workload, c *Config) time.Time {
	if len(c.Changed) == 0 {
		delete(r.first, name)
		return c.Now
	}
	if contents := w.RunContents(); r.first[name].contents != contents {
		r.first[name] = change{contents: contents, since: c.Now}
	}
	return r.first[name].since.Add(r.options.Window)
}
