package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/ring"
)

var (
	// ErrNotFound is returned for a module that does not exist.
	ErrNotFound = errors.New("no such module")
	// ErrNotInstalled is returned where the API server does not know the kinds.
	ErrNotInstalled = errors.New("the kinds of fleet.squaremo.dev are not installed; install them with spillway install --rings=fleet")
)

// Explain returns the state of one module, as the manager has recorded it, with the caller's own
// permissions.
func Explain(ctx context.Context, reader client.Reader, options Options, moduleKind string, key types.NamespacedName) (decision.Explanation, error) {
	if !ring.Watches(options.Namespaces, key.Namespace) {
		return notWatched(moduleKind, key, options.Namespaces), nil
	}
	_, e, err := kindNamed(moduleKind).explain(ctx, reader, key)
	return e, err
}

func (k *kind) explain(ctx context.Context, reader client.Reader, key types.NamespacedName) (client.Object, decision.Explanation, error) {
	module := model.New(k.name)
	err := reader.Get(ctx, key, module)
	switch {
	case apierrors.IsNotFound(err):
		return nil, decision.Explanation{}, fmt.Errorf("%s %s in namespace %s: %w; spillway fleet status lists them", k.name, key.Name, key.Namespace, ErrNotFound)
	case err != nil:
		return nil, decision.Explanation{}, notInstalled(fmt.Errorf("get %s %s: %w", k.name, key.Name, err))
	default:
		return module, decision.ExplanationOf(module), nil
	}
}

// Status explains every module of a namespace, of all if it is empty, in the order of
// their names.
func Status(ctx context.Context, reader client.Reader, options Options, namespace string) ([]decision.Explanation, error) {
	explanations := []decision.Explanation{}
	for _, k := range kinds() {
		list := k.modules()
		if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, notInstalled(fmt.Errorf("list %ss: %w", k.name, err))
		}
		for _, module := range itemsOf(list) {
			if ring.Watches(options.Namespaces, module.GetNamespace()) {
				explanations = append(explanations, decision.ExplanationOf(module))
			}
		}
	}
	slices.SortStableFunc(explanations, func(a, b decision.Explanation) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return explanations, nil
}

// ExplainCluster says how one cluster stands with a module, also if it is none of its clusters: as the
// record of the module says; and where that does not name it, as its assemblage and its labels do.
func ExplainCluster(ctx context.Context, reader client.Reader, moduleKind string, key types.NamespacedName, name string) (decision.ClusterExplanation, error) {
	k := kindNamed(moduleKind)
	module, e, err := k.explain(ctx, reader, key)
	if err != nil {
		return decision.ClusterExplanation{}, err
	}
	r, err := k.assigned(ctx, reader, key, name)
	if err != nil {
		return decision.ClusterExplanation{}, err
	}
	if c := e.Cluster(name); c != nil {
		if r != nil {
			c.Revision, c.Overrides, c.State, c.Hold = r.Revision, r.Overrides, r.State, r.Hold
		}
		return *c, nil
	}
	clusters, err := cluster.ListLive(ctx, reader, key.Namespace)
	if err != nil {
		return decision.ClusterExplanation{}, fmt.Errorf("list the clusters: %w", err)
	}
	var known *model.Cluster
	if i := slices.IndexFunc(clusters, func(c cluster.Cluster) bool { return c.Name == name }); i >= 0 {
		known = new(clusterOf(&clusters[i]))
	}
	spec, _ := model.Parts(module)
	return e.Assigned(r, known, spec.Selector, name), nil
}

// assigned is what the assemblage of a cluster says of a module, nil if there is none or the caller may not
// read it.
func (k *kind) assigned(ctx context.Context, reader client.Reader, module types.NamespacedName, cluster string) (*model.Record, error) {
	object := model.NewAssemblage(k.name)
	err := reader.Get(ctx, types.NamespacedName{Namespace: module.Namespace, Name: cluster}, object)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, nil //nolint:nilnil // it is assigned nothing that is known
	case err != nil:
		return nil, fmt.Errorf("get %s %s: %w", k.assemblage, cluster, err)
	}
	a := assembledOf(object)
	r := recordOf(&a, module.Name)
	return &r, nil
}

// notInstalled tells an API server that does not know the kinds from one that fails.
func notInstalled(err error) error {
	if apimeta.IsNoMatchError(errors.Unwrap(err)) {
		return ErrNotInstalled
	}
	return err
}

func notWatched(moduleKind string, key types.NamespacedName, namespaces []string) decision.Explanation {
	return decision.Explanation{Kind: moduleKind, Namespace: key.Namespace, Name: key.Name, Sentence: fmt.Sprintf(
		"%s %s is not watched: the manager watches only %s; add namespace %s to --namespaces",
		moduleKind, key.Name, strings.Join(namespaces, ", "), key.Namespace)}
}
