package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

// +kubebuilder:rbac:groups=spillway.dev,resources=configpolicies;clusterconfigpolicies,verbs=list;watch
// +kubebuilder:rbac:groups=spillway.dev,resources=configpolicies/status;clusterconfigpolicies/status,verbs=update

// Reader reads policies. Of those that have not changed it keeps what it has read.
type Reader struct {
	reader client.Reader
	// kinds are the kinds to read.
	kinds []client.ObjectList
	// lenient is true for a user who explains: what must not be read counts as absent.
	lenient bool
	known   map[types.UID]known
}

// known is a policy as it was at a version.
type known struct {
	version string
	policy  *Policy
}

// NewReader reads for a user, with what the user may read, the policies of a manager of some
// namespaces, of all if there are none.
func NewReader(reader client.Reader, namespaces []string) *Reader {
	r := &Reader{reader: reader, lenient: true}
	for _, k := range kindsFor(namespaces) {
		r.kinds = append(r.kinds, k.list)
	}
	return r
}

// kind is a kind of policy.
type kind struct {
	name   string
	object client.Object
	list   client.ObjectList
}

// kindsFor are the kinds of the policies for a manager of some namespaces. It has no permission
// for what is in none, and would not know all releases of a ClusterConfigPolicy.
func kindsFor(namespaces []string) []kind {
	kinds := []kind{{Kind, &v1alpha1.ConfigPolicy{}, &v1alpha1.ConfigPolicyList{}}}
	if len(namespaces) == 0 {
		kinds = append(kinds, kind{ClusterKind, &v1alpha1.ClusterConfigPolicy{}, &v1alpha1.ClusterConfigPolicyList{}})
	}
	return kinds
}

// Setup returns a reader for a manager, and the kinds that it has to watch. Kinds that are not
// installed when the manager begins, or must not be read, are left out: no policy is then in
// force.
func Setup(ctx context.Context, mgr ctrl.Manager, namespaces []string) (*Reader, []client.Object, error) {
	r := &Reader{reader: mgr.GetClient()}
	logger := mgr.GetLogger().WithName("config")
	var watched []client.Object
	for _, k := range kindsFor(namespaces) {
		_, err := mgr.GetRESTMapper().RESTMapping(v1alpha1.GroupVersion.WithKind(k.name).GroupKind(), v1alpha1.GroupVersion.Version)
		if apimeta.IsNoMatchError(err) {
			logger.V(1).Info("no policy of the kind is in force, because it was not installed when the manager began", "kind", k.name)
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("look for the kind %s: %w", k.name, err)
		}
		permitted, err := mayList(ctx, mgr.GetAPIReader(), k.list, namespaces)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("list one %s: %w", k.name, err)
		case !permitted:
			logger.Error(nil, "no policy of the kind is in force: no permission to list it; grant list and watch, and restart the manager", "kind", k.name)
		default:
			r.kinds, watched = append(r.kinds, k.list), append(watched, k.object)
		}
	}
	return r, watched, nil
}

// mayList is true if a kind may be listed in all namespaces of the manager.
func mayList(ctx context.Context, reader client.Reader, list client.ObjectList, namespaces []string) (bool, error) {
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, namespace := range namespaces {
		err := reader.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		if err != nil {
			return false, err //nolint:wrapcheck // the caller does
		}
	}
	return true, nil
}

// Read returns the policies for some namespaces, the empty one stands for all. A nil reader
// knows none.
func (r *Reader) Read(ctx context.Context, namespaces []string) (Set, error) {
	if r == nil || len(r.kinds) == 0 {
		return nil, nil
	}
	var set Set
	seen := map[types.UID]known{}
	for _, kind := range r.kinds {
		in := namespaces
		if _, isCluster := kind.(*v1alpha1.ClusterConfigPolicyList); isCluster {
			in = []string{""}
		}
		for _, namespace := range in {
			if err := r.list(ctx, kind, namespace, seen); err != nil {
				return nil, err
			}
		}
	}
	r.known = seen
	for _, k := range seen {
		set = append(set, k.policy)
	}
	slices.SortFunc(set, Compare)
	return set, nil
}

func (r *Reader) list(ctx context.Context, kind client.ObjectList, namespace string, seen map[types.UID]known) error {
	list, _ := kind.DeepCopyObject().(client.ObjectList)
	if err := r.reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		if r.lenient && isAbsent(err) {
			return nil
		}
		return fmt.Errorf("list policies: %w", err)
	}
	return apimeta.EachListItem(list, func(item runtime.Object) error { //nolint:wrapcheck // there is none
		obj, ok := item.(client.Object)
		if !ok || obj.GetDeletionTimestamp() != nil {
			return nil
		}
		k, ok := r.known[obj.GetUID()]
		if !ok || k.version != obj.GetResourceVersion() {
			k = known{obj.GetResourceVersion(), Read(obj)}
		}
		seen[obj.GetUID()] = k
		return nil
	})
}

// isAbsent is true of errors that say that there are no policies to be read.
func isAbsent(err error) bool {
	discovery := &apimeta.NoKindMatchError{}
	return apimeta.IsNoMatchError(err) || errors.As(err, &discovery) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err)
}
