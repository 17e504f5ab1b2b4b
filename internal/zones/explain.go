package zones

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

var (
	// ErrNotFound is returned for a group that has neither an object nor members.
	ErrNotFound = errors.New("no such group")
	// ErrNotInstalled is returned where the API server does not know the kind.
	ErrNotInstalled = errors.New("the kind RolloutGroup is not installed")
)

// Explain says how one group stands, by the same code that the manager runs, with
// the caller's own permissions and nothing but reads. The reader may, but need
// not, be a cache.
func Explain(ctx context.Context, reader client.Reader, options Options, namespace, name string) (decision.Explanation, error) {
	if !ring.Watches(options.Namespaces, namespace) {
		return notWatched(namespace, name, options.Namespaces), nil
	}
	s, err := look(ctx, liveViewer{reader}, options, types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil {
		return decision.Explanation{}, err
	}
	if s.object == nil && len(s.sets) == 0 {
		return decision.Explanation{}, fmt.Errorf("group %s in namespace %s: %w; a group is made by the label rollout-group of a StatefulSet", name, namespace, ErrNotFound)
	}
	return explain(&s), nil
}

// Status explains every group in a namespace, in all if it is empty, in the order
// of their names.
func Status(ctx context.Context, reader client.Reader, options Options, namespace string) ([]decision.Explanation, error) {
	return status(ctx, liveViewer{reader}, options, namespace)
}

func status(ctx context.Context, reader viewer, options Options, namespace string) ([]decision.Explanation, error) {
	keys := map[types.NamespacedName]bool{}
	for _, in := range options.visible(namespace) {
		if err := addGroups(ctx, reader, in, keys); err != nil {
			return nil, err
		}
	}
	sorted := slices.SortedFunc(maps.Keys(keys), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	explanations := make([]decision.Explanation, 0, len(sorted))
	for _, key := range sorted {
		s, err := look(ctx, reader, options, key)
		if err != nil {
			return nil, err
		}
		explanations = append(explanations, explain(&s))
	}
	return explanations, nil
}

// visible are the namespaces to look at; the empty one stands for all.
func (o Options) visible(namespace string) []string {
	if namespace == "" && len(o.Namespaces) > 0 {
		return o.Namespaces
	}
	return []string{namespace}
}

// addGroups finds the groups that have an object, and those that have members.
func addGroups(ctx context.Context, reader client.Reader, namespace string, keys map[types.NamespacedName]bool) error {
	written, sets := &v1alpha1.RolloutGroupList{}, &appsv1.StatefulSetList{}
	if err := reader.List(ctx, written, client.InNamespace(namespace)); err != nil {
		return notInstalled(fmt.Errorf("list RolloutGroups: %w", err))
	}
	if err := reader.List(ctx, sets, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list StatefulSets: %w", err)
	}
	for i := range written.Items {
		keys[client.ObjectKeyFromObject(&written.Items[i])] = true
	}
	for i := range sets.Items {
		if group := groupOf(&sets.Items[i]); group != "" {
			keys[types.NamespacedName{Namespace: sets.Items[i].Namespace, Name: group}] = true
		}
	}
	return nil
}

// look is what a manager would see of a group that has just begun.
func look(ctx context.Context, reader viewer, options Options, key types.NamespacedName) (snapshot, error) {
	group := &v1alpha1.RolloutGroup{}
	err := reader.Get(ctx, key, group)
	switch {
	case apierrors.IsNotFound(err):
		group = nil
	case err != nil:
		return snapshot{}, notInstalled(fmt.Errorf("get RolloutGroup %s: %w", key.Name, err))
	}
	v, err := reader.view(ctx, key)
	if err != nil {
		return snapshot{}, err
	}
	s := snapshot{key: key, object: group, sets: v.sets}
	s.Observed = decision.Observed{
		Now: options.Now(), Live: true, Group: groupSeen(key, group), AsOf: v.asOf, Sets: v.observed(),
		Server: decision.Server{MaxUnavailable: true, AdvancesRevision: true}, // it changes what is written, not what waits
	}
	if group != nil && len(group.Spec.Gates) > 0 {
		s.Gates, err = ask.List(ctx, reader, key.Namespace, group.UID)
		if err != nil && !apierrors.IsForbidden(err) { // it is pending for a user who may not see it
			return snapshot{}, err
		}
	}
	b := &budgets{reader: reader}
	b.watched.Store(true)
	return s, b.bound(ctx, &s)
}

// notInstalled tells an API server that does not know the kind from one that fails.
func notInstalled(err error) error {
	if apimeta.IsNoMatchError(errors.Unwrap(err)) {
		return fmt.Errorf("%w; apply what \"spillway install --export\" prints", ErrNotInstalled)
	}
	return err
}

func notWatched(namespace, name string, namespaces []string) decision.Explanation {
	return decision.Explanation{Namespace: namespace, Name: name, Sentence: fmt.Sprintf(
		"group %s is not watched: the manager watches only %s; add namespace %s to --namespaces",
		name, strings.Join(namespaces, ", "), namespace)}
}

// explain says in one sentence how a group stands, and then the facts.
func explain(s *snapshot) decision.Explanation {
	e := decision.Explain(s.Observed)
	e.Automatic, e.Missing = s.object != nil && isUntouched(s.object), s.object == nil
	return e
}
