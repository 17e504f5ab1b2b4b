package ask

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

// Installed is true if the API server knows RolloutGates. Where it does not, no object can
// name a gate.
func Installed(mapper apimeta.RESTMapper) (bool, error) {
	kind := v1alpha1.GroupVersion.WithKind("RolloutGate")
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if apimeta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the kind RolloutGate: %w", err)
	}
	return true, nil
}

// List reads the RolloutGates of an object. Where the kind is not installed, there are none.
func List(ctx context.Context, r client.Reader, namespace string, target types.UID) (Gates, error) {
	list := &v1alpha1.RolloutGateList{}
	err := r.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	if apimeta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list RolloutGates: %w", err)
	}
	return Of(list.Items, target), nil
}

// ToTarget maps a RolloutGate to the object of a kind that rolls out.
func ToTarget(apiVersion, kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		g, ok := obj.(*v1alpha1.RolloutGate)
		if !ok || g.Spec.TargetRef.APIVersion != apiVersion || g.Spec.TargetRef.Kind != kind {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: g.Namespace, Name: g.Spec.TargetRef.Name}}}
	})
}
