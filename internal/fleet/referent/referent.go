package referent

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/fleet/binding"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/watch"
)

// Reader reads objects for one controller. It is safe for concurrent use.
type Reader struct {
	*watch.Watches

	live   client.Reader
	mapper apimeta.RESTMapper
}

// New returns a reader of objects in some namespaces, all if none are named. It runs
// with the manager.
func New(mgr ctrl.Manager, namespaces []string) (*Reader, error) {
	w, err := watch.New(mgr, watch.Options{Namespaces: namespaces, Verbs: "get, list and watch"})
	return &Reader{Watches: w, live: mgr.GetAPIReader(), mapper: mgr.GetRESTMapper()}, err
}

// Complete reads the objects that a decision turned out to need. It is true if there were
// any, so that it is decided again. Once there are none, the pass of the seeker ends.
func (r *Reader) Complete(ctx context.Context, seeker types.NamespacedName, needs []binding.Object, known binding.Known) (more bool, err error) {
	for _, object := range needs {
		if known[object], err = r.look(ctx, seeker, object); err != nil {
			return false, err
		}
	}
	if len(needs) == 0 {
		r.End(seeker)
	}
	return len(needs) > 0, nil
}

// look reads an object in the namespace of the seeker, and has it woken when the
// object changes.
func (r *Reader) look(ctx context.Context, seeker types.NamespacedName, o binding.Object) (binding.Look, error) {
	gvk, refused, err := r.kind(o)
	if err != nil || refused != "" {
		return binding.Look{Refused: refused}, err
	}
	key := client.ObjectKey{Namespace: seeker.Namespace, Name: o.Name}
	if err := r.Follow(ctx, seeker, watch.Object{GroupVersionKind: gvk, NamespacedName: key}, false); err != nil {
		return refusedOr(err, "read "+o.String())
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	err = r.live.Get(ctx, key, u)
	switch {
	case apierrors.IsNotFound(err):
		return binding.Look{}, nil
	case err != nil:
		return refusedOr(err, "get "+o.String())
	default:
		return binding.Look{Content: u.Object}, nil
	}
}

// kind is the kind of an object that may be bound; refused says why it may not.
func (r *Reader) kind(o binding.Object) (gvk schema.GroupVersionKind, refused string, err error) {
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil {
		return gvk, fmt.Sprintf("has the invalid apiVersion %s", message.Quote(o.APIVersion)), nil //nolint:nilerr // the author of the binding must fix it
	}
	gvk = gv.WithKind(o.Kind)
	if gv.Group == "" && o.Kind == "Secret" {
		return gvk, "cannot be bound: bound values are visible in plain text", nil
	}
	mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	switch {
	case apimeta.IsNoMatchError(err):
		return gvk, fmt.Sprintf("is of a kind that is not installed (%s in %s)", o.Kind, o.APIVersion), nil
	case err != nil:
		return gvk, "", fmt.Errorf("look for the kind %s: %w", o.Kind, err)
	case mapping.Scope.Name() == apimeta.RESTScopeNameRoot:
		return gvk, "is in no namespace; only what is in the same namespace can be bound", nil
	default:
		return gvk, "", nil
	}
}

func refusedOr(err error, what string) (binding.Look, error) {
	if apierrors.IsForbidden(err) {
		return binding.Look{Refused: "may not be read by the manager; grant it to get, list and watch them"}, nil
	}
	return binding.Look{}, fmt.Errorf("%s: %w", what, err)
}
