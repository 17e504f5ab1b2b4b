package hub

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/ring"
)

var (
	// ErrNotFound is returned for a module that does not exist.
	ErrNotFound = errors.New("no such module")
	// ErrNotInstalled is returned where the API server does not know the kinds.
	ErrNotInstalled = errors.New("the kinds of fleet.squaremo.dev are not installed; install them with spillway install --rings=fleet")
)

// ExplainCluster says how one cluster stands with a module, also if it is none of its
// clusters.
func ExplainCluster(ctx context.Context, reader client.Reader, options Options, moduleKind string, key types.NamespacedName, name string) (decision.ClusterExplanation, error) {
	s, err := kindNamed(moduleKind).snapshot(ctx, reader, options, newMemory(key))
	if err != nil {
		return decision.ClusterExplanation{}, err
	}
	return decision.ExplainCluster(&s.Observed, name), nil
}

// Status explains every module of a namespace, of all if it is empty, in the order of
// their names.
func Status(ctx context.Context, reader client.Reader, options Options, namespace string) ([]decision.Explanation, error) {
	return NewMemory().Status(ctx, reader, options, namespace)
}

// Memory is which clusters say what their revisions do, from one status to the next, so that each
// compares only the assemblages that have changed. Losing it is safe. It is for one status at a time.
type Memory struct {
	drifts map[moduleKey]map[types.UID]drift
}

// moduleKey names a module of a kind.
type moduleKey struct {
	kind string
	types.NamespacedName
}

// NewMemory knows nothing.
func NewMemory() *Memory { return &Memory{map[moduleKey]map[types.UID]drift{}} }

// Status is the package's, and remembers what was compared.
func (m *Memory) Status(ctx context.Context, reader client.Reader, options Options, namespace string) ([]decision.Explanation, error) {
	reader = &once{Reader: reader, lists: map[string]client.ObjectList{}}
	explanations, before := []decision.Explanation{}, m.drifts
	m.drifts = map[moduleKey]map[types.UID]drift{}
	for _, k := range kinds() {
		list := k.modules()
		if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, notInstalled(fmt.Errorf("list %ss: %w", k.name, err))
		}
		for _, module := range itemsOf(list) {
			if !ring.Watches(options.Namespaces, module.GetNamespace()) {
				continue
			}
			e, err := k.explain(ctx, reader, options, m.of(moduleKey{k.name, client.ObjectKeyFromObject(module)}, before))
			if errors.Is(err, ErrNotFound) {
				continue // it has gone meanwhile
			}
			if err != nil {
				return nil, err
			}
			explanations = append(explanations, e)
		}
	}
	slices.SortStableFunc(explanations, func(a, b decision.Explanation) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return explanations, nil
}

// of is what is remembered of a module, and was before.
func (m *Memory) of(key moduleKey, before map[moduleKey]map[types.UID]drift) *memory {
	of := newMemory(key.NamespacedName)
	of.readOnly = true
	if known := before[key]; known != nil {
		of.drifts = known
	}
	m.drifts[key] = of.drifts
	return of
}

// once is a reader that asks for each list once: modules share their clusters and
// their assemblages.
type once struct {
	client.Reader

	lists map[string]client.ObjectList
}

// List implements [client.Reader].
func (o *once) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	applied := (&client.ListOptions{}).ApplyOptions(opts)
	key := fmt.Sprintf("%T %s %s", list, list.GetObjectKind().GroupVersionKind(), applied.Namespace)
	if known, ok := o.lists[key]; ok {
		reflect.ValueOf(list).Elem().Set(reflect.ValueOf(known).Elem())
		return nil
	}
	if err := o.Reader.List(ctx, list, opts...); err != nil {
		return err //nolint:wrapcheck // the caller says what for
	}
	o.lists[key] = list
	return nil
}

// directory is [cluster.Look] as a [Directory] that never changes.
type directory struct{ reader client.Reader }

// List implements [Directory].
func (d directory) List(ctx context.Context, namespace string) ([]cluster.Cluster, error) {
	return cluster.ListLive(ctx, d.reader, namespace)
}

// Subscribe implements [Directory].
func (directory) Subscribe(func(types.NamespacedName)) {}

func (k *kind) explain(ctx context.Context, reader client.Reader, options Options, m *memory) (decision.Explanation, error) {
	s, err := k.snapshot(ctx, reader, options, m)
	if apierrors.IsForbidden(err) && s.object != nil {
		return decision.ExplainWritten(&s.Observed, err), nil
	}
	if err != nil {
		return decision.Explanation{}, err
	}
	return decision.Explain(&s.Observed), nil
}

// Explain returns the state of one module, by the same code that the manager runs, with
// the caller's own permissions and nothing but reads. A caller who may not list what
// clusters are known by gets what the manager has written.
func Explain(ctx context.Context, reader client.Reader, options Options, moduleKind string, key types.NamespacedName) (decision.Explanation, error) {
	if !ring.Watches(options.Namespaces, key.Namespace) {
		return notWatched(moduleKind, key, options.Namespaces), nil
	}
	return kindNamed(moduleKind).explain(ctx, reader, options, newMemory(key))
}

// snapshot is what a manager would see of a module that has just begun.
func (k *kind) snapshot(ctx context.Context, reader client.Reader, options Options, m *memory) (snapshot, error) {
	o := observer{options: options, kind: k, cached: reader, live: reader, unindexed: true, clusters: directory{reader}}
	if mapped, ok := reader.(interface{ RESTMapper() apimeta.RESTMapper }); ok {
		o.kinds = mapped.RESTMapper()
	}
	s, err := o.observe(ctx, m, false)
	if err != nil {
		return s, notInstalled(err)
	}
	if s.object == nil {
		return s, fmt.Errorf("%s %s in namespace %s: %w; spillway fleet status lists them", k.name, m.key.Name, m.key.Namespace, ErrNotFound)
	}
	s.Now, s.Live = s.Now.Truncate(time.Microsecond), true
	return s, nil
}

// notInstalled tells an API server that does not know the kinds from one that fails.
func notInstalled(err error) error {
	var missing *apimeta.NoKindMatchError
	if errors.As(err, &missing) && missing.GroupKind.Group != cluster.GVK.Group {
		return ErrNotInstalled
	}
	return err
}

func notWatched(moduleKind string, key types.NamespacedName, namespaces []string) decision.Explanation {
	return decision.Explanation{Kind: moduleKind, Namespace: key.Namespace, Name: key.Name, Sentence: fmt.Sprintf(
		"%s %s is not watched: the manager watches only %s; add namespace %s to --namespaces",
		moduleKind, key.Name, strings.Join(namespaces, ", "), key.Namespace)}
}
