package snapshots

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
)

// The permissions where pins are on, beside those of the ring, are those of the chart's pins.yaml.

// Options are the manager's choices for snapshots.
type Options struct {
	// Namespaces are those where workloads may have pins.
	Namespaces pin.Namespaces
	// Watched are those that the manager watches, all if empty.
	Watched []string
	// By is what points Pods at snapshots.
	By pin.By
	// Now is the clock.
	Now func() time.Time
}

// Setup adds what collects snapshots to a manager, in the namespaces where pins are possible. There is no
// [Keeper] if they are possible in none: the API server cannot apply pins, or the manager may not see
// what refers to snapshots, as in a namespace that was deleted with its Roles.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) (*Keeper, *Where, error) {
	where := NewWhere(o.Namespaces, mgr.GetCache())
	if err := where.ask(ctx, mgr, o.By); err != nil || where.isRefused() {
		return nil, where, err
	}
	in := where.possible()
	if where.ReachAll() {
		in = o.Watched
	}
	seen, err := watched(mgr, in)
	if err != nil {
		return nil, nil, err
	}
	c := &collector{Keeper: &Keeper{
		live: mgr.GetAPIReader(), writer: mgr.GetClient(), now: o.Now, seen: seen, referrers: split{workloads: mgr.GetCache(), others: seen},
	}, digests: mgr.GetCache(), where: where}
	b := ctrl.NewControllerManagedBy(mgr).Named("config-snapshots")
	for _, obj := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}} {
		b = b.Watches(obj, toNamespace(), builder.WithPredicates(where.inside(ctx), contentMatters()))
	}
	for _, obj := range []client.Object{&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}} {
		b = b.Watches(obj, toNamespace(), builder.WithPredicates(where.inside(ctx), pinsMatter()))
	}
	for _, obj := range unwatched() {
		b = b.WatchesRawSource(source.Kind(seen, obj, toNamespace(), where.inside(ctx), pinsMatter()))
	}
	if namespaces := where.Watched(); namespaces != nil {
		b = b.Watches(namespaces, &handler.EnqueueRequestForObject{}, builder.WithPredicates(where.Switched()))
	}
	err = b.WithOptions(controller.Options{RateLimiter: ring.Passes().RateLimiter()}).Complete(c)
	if err != nil {
		return nil, nil, fmt.Errorf("build the controller of snapshots: %w", err)
	}
	return c.Keeper, where, nil
}

// unwatched are the kinds that refer to snapshots and that no ring watches otherwise.
func unwatched() []client.Object {
	return []client.Object{&appsv1.ReplicaSet{}, &appsv1.ControllerRevision{}, &corev1.Pod{}, &batchv1.Job{}}
}

// Served is true if the API server can apply pins.
func Served(mapper apimeta.RESTMapper) (bool, error) {
	_, err := mapper.RESTMapping(pin.PolicyKind.GroupKind(), pin.PolicyKind.Version)
	if apimeta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the kind %s: %w", pin.PolicyKind.Kind, err)
	}
	return true, nil
}

// Unserved is why there are no pins on an older API server.
const Unserved = "the API server has no MutatingAdmissionPolicies (admissionregistration.k8s.io/v1); upgrade to Kubernetes 1.36 or later, or install with --pin-by=webhook"

// Refusal is why nothing can point Pods at snapshots, empty if something can.
func Refusal(mapper apimeta.RESTMapper, by pin.By) (string, error) {
	if by == pin.ByWebhook {
		return "", nil
	}
	if served, err := Served(mapper); err != nil || served {
		return "", err
	}
	return Unserved, nil
}

// ask finds out where there can be no pins.
func (w *Where) ask(ctx context.Context, mgr ctrl.Manager, by pin.By) error {
	w.refused = map[string]string{}
	why, err := Refusal(mgr.GetRESTMapper(), by)
	if err != nil {
		return err
	}
	if why != "" {
		w.refused[""] = why
		return nil
	}
	in := w.Names
	if w.ReachAll() {
		in = []string{""}
	}
	for _, namespace := range in {
		if why, err = w.refusalIn(ctx, mgr, namespace); err != nil {
			return err
		}
		if why != "" {
			w.refused[namespace] = why
		}
	}
	return nil
}

// refusalIn is why there can be no pins in a namespace, empty if there can be.
func (w *Where) refusalIn(ctx context.Context, mgr ctrl.Manager, namespace string) (string, error) {
	needed := unwatched()
	if w.Selector != nil {
		needed = append(needed, &corev1.Namespace{})
	}
	where := "in namespace " + namespace
	if namespace == "" {
		where = "in all namespaces"
	}
	for _, obj := range needed {
		gvk, err := mgr.GetClient().GroupVersionKindFor(obj)
		if err != nil {
			return "", fmt.Errorf("find the kind of %T: %w", obj, err)
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err = mgr.GetAPIReader().List(ctx, list, client.InNamespace(namespace), client.Limit(1))
		if apierrors.IsForbidden(err) {
			return fmt.Sprintf("the manager may not list %ss %s; run spillway install with %s, and restart the manager", strings.ToLower(gvk.Kind), where, w.Namespaces), nil
		}
		if err != nil {
			return "", fmt.Errorf("list one %s: %w", gvk.Kind, err)
		}
	}
	return "", nil
}

// watched is a cache of what refers to snapshots and no ring watches, in some namespaces, in all if
// there are none.
func watched(mgr ctrl.Manager, namespaces []string) (cache.Cache, error) {
	seen, err := kube.NewCache(mgr, cache.Options{DefaultNamespaces: kube.InNamespaces(namespaces), DefaultTransform: reduce})
	if err != nil {
		return nil, fmt.Errorf("make a cache of what refers to snapshots: %w", err)
	}
	if err := mgr.Add(seen); err != nil {
		return nil, fmt.Errorf("add the cache of what refers to snapshots: %w", err)
	}
	return seen, nil
}

// split reads workloads from the manager's cache, and the rest from that of this package.
type split struct {
	workloads client.Reader
	others    client.Reader
}

// Get implements [client.Reader].
func (s split) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return s.others.Get(ctx, key, obj, opts...) //nolint:wrapcheck // stands in for the reader
}

// List implements [client.Reader].
func (s split) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch list.(type) {
	case *appsv1.DeploymentList, *appsv1.StatefulSetList, *appsv1.DaemonSetList:
		return s.workloads.List(ctx, list, opts...) //nolint:wrapcheck // stands in for the reader
	default:
		return s.others.List(ctx, list, opts...) //nolint:wrapcheck // stands in for the reader
	}
}

// toNamespace maps every event to its namespace.
func toNamespace() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: obj.GetNamespace()}}}
	})
}

// contentMatters leaves out updates that change no content.
func contentMatters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return content.Differ(e.ObjectOld, e.ObjectNew) }}
}

// pinsMatter leaves out what refers to no snapshot, and did not.
func pinsMatter() predicate.Predicate {
	p := predicate.NewPredicateFuncs(func(obj client.Object) bool { return pinsOf(obj) != "" })
	p.UpdateFunc = func(e event.UpdateEvent) bool { return pinsOf(e.ObjectOld) != pinsOf(e.ObjectNew) }
	return p
}
