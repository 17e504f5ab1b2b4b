package preparation

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;patch

// Interests are the StatefulSets whose Pods must be prepared.
func Interests() []kube.Interest {
	return []kube.Interest{{Object: &appsv1.StatefulSet{}, Sees: isPrepared}}
}

// Setup adds the controller to a manager whose cache was made with [Interests].
func Setup(mgr ctrl.Manager) error {
	// The client of the manager would watch all namespaces to see its own writes.
	writer, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	r := &reconciler{sets: mgr.GetCache(), live: mgr.GetAPIReader(), actor: actor{writer}}
	err = ctrl.NewControllerManagedBy(mgr).Named("namespaces").
		Watches(&appsv1.StatefulSet{}, handler.EnqueueRequestsFromMapFunc(toNamespace), builder.WithPredicates(r.matters())).
		WithOptions(controller.Options{RateLimiter: ring.Refused().RateLimiter()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("build the controller of the labels of namespaces: %w", err)
	}
	return nil
}

// reconciler labels namespaces. There is one request for each.
type reconciler struct {
	sets, live client.Reader
	actor      actor
	// bare has the names of namespaces that were seen without the label and without a
	// StatefulSet that needs it. Losing it costs a read.
	bare sync.Map
}

// Reconcile makes the label of a namespace what its StatefulSets need.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer ring.UnderWay.Begin("namespaces")()
	needed, err := r.isNeeded(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err = r.live.Get(ctx, req.NamespacedName, ns)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("get the namespace: %w", err)
	}
	if ns.UID == "" {
		return reconcile.Result{}, nil // it is gone
	}
	if (vocabulary.PreparesScales.Get(ns.Labels) == "true") == needed {
		if !needed {
			r.bare.Store(req.Name, true)
		}
		return reconcile.Result{}, nil
	}
	err = r.actor.label(ctx, ns, needed)
	if ring.IsConflict(err) {
		return reconcile.Result{RequeueAfter: ring.Conflicts().First}, nil
	}
	return reconcile.Result{}, err
}

// isNeeded is true if the Pods of some StatefulSet of the namespace must be prepared.
func (r *reconciler) isNeeded(ctx context.Context, namespace string) (bool, error) {
	sets := &appsv1.StatefulSetList{}
	if err := r.sets.List(ctx, sets, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list StatefulSets: %w", err)
	}
	for i := range sets.Items {
		if isPrepared(&sets.Items[i]) {
			return true, nil
		}
	}
	return false, nil
}

func toNamespace(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: obj.GetNamespace()}}}
}

// matters leaves out what cannot change what a namespace needs.
func (r *reconciler) matters() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			_, bare := r.bare.Load(e.Object.GetNamespace())
			return !bare || isPrepared(e.Object)
		},
		UpdateFunc: func(e event.UpdateEvent) bool { return isPrepared(e.ObjectOld) != isPrepared(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return isPrepared(e.Object) },
	}
}

func isPrepared(obj client.Object) bool {
	return vocabulary.PrepareDownscale.Get(obj.GetLabels()) == "true"
}
