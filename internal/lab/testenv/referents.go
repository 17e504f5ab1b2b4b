package testenv

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/fleet/binding"
)

// Referents read what bindings refer to each time, from an API server in memory, where nothing is watched.
type Referents struct{ client.Reader }

// Begin has nothing to keep.
func (Referents) Begin(types.NamespacedName) {}

// Forget has nothing to forget.
func (Referents) Forget(types.NamespacedName) {}

// Complete reads the objects that a decision turned out to need, and is true if there were any.
func (r Referents) Complete(ctx context.Context, seeker types.NamespacedName, needs []binding.Object, known binding.Known) (bool, error) {
	for _, o := range needs {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))
		if err := r.Get(ctx, client.ObjectKey{Namespace: seeker.Namespace, Name: o.Name}, u); client.IgnoreNotFound(err) != nil {
			return false, err //nolint:wrapcheck // it stands in for the reader of referents
		}
		known[o] = binding.Look{Content: u.Object}
	}
	return len(needs) > 0, nil
}
