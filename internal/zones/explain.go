package zones

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

var (
	// ErrNotFound is returned for a group that has neither an object nor members.
	ErrNotFound = errors.New("no such group")
	// ErrNotInstalled is returned where the API server does not know the kind.
	ErrNotInstalled = errors.New("the kind RolloutGroup is not installed")
)

// Explain says how one group stands, as the manager has recorded it, with the caller's own permissions. The
// reader may, but need not, be a cache.
func Explain(ctx context.Context, reader client.Reader, options Options, namespace, name string) (decision.Explanation, error) {
	if !ring.Watches(options.Namespaces, namespace) {
		return notWatched(namespace, name, options.Namespaces), nil
	}
	group := &v1alpha1.RolloutGroup{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, group)
	if err == nil {
		return explanationOf(group), nil
	}
	if !apierrors.IsNotFound(err) {
		return decision.Explanation{}, notInstalled(fmt.Errorf("get RolloutGroup %s: %w", name, err))
	}
	unmade, err := members(ctx, reader, namespace)
	if err != nil {
		return decision.Explanation{}, err
	}
	if key := (types.NamespacedName{Namespace: namespace, Name: name}); unmade[key] {
		return decision.Unmade(namespace, name), nil
	}
	return decision.Explanation{}, fmt.Errorf("group %s in namespace %s: %w; a group is made by the label rollout-group of a StatefulSet", name, namespace, ErrNotFound)
}

// Status explains every group in a namespace, in all if it is empty, in the order
// of their names.
func Status(ctx context.Context, reader client.Reader, options Options, namespace string) ([]decision.Explanation, error) {
	explanations := []decision.Explanation{}
	for _, in := range options.visible(namespace) {
		written := &v1alpha1.RolloutGroupList{}
		if err := reader.List(ctx, written, client.InNamespace(in)); err != nil {
			return nil, notInstalled(fmt.Errorf("list RolloutGroups: %w", err))
		}
		unmade, err := members(ctx, reader, in)
		if err != nil {
			return nil, err
		}
		for i := range written.Items {
			delete(unmade, client.ObjectKeyFromObject(&written.Items[i]))
			explanations = append(explanations, explanationOf(&written.Items[i]))
		}
		for key := range unmade {
			explanations = append(explanations, decision.Unmade(key.Namespace, key.Name))
		}
	}
	slices.SortFunc(explanations, func(a, b decision.Explanation) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return explanations, nil
}

// visible are the namespaces to look at; the empty one stands for all.
func (o Options) visible(namespace string) []string {
	if namespace == "" && len(o.Namespaces) > 0 {
		return o.Namespaces
	}
	return []string{namespace}
}

// members are the groups that StatefulSets belong to; none for a caller who may not list these, as all that
// the manager has made has an object.
func members(ctx context.Context, reader client.Reader, namespace string) (map[types.NamespacedName]bool, error) {
	sets, groups := &appsv1.StatefulSetList{}, map[types.NamespacedName]bool{}
	if err := reader.List(ctx, sets, client.InNamespace(namespace)); err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("list StatefulSets: %w", err)
	}
	for i := range sets.Items {
		if group := groupOf(&sets.Items[i]); group != "" {
			groups[types.NamespacedName{Namespace: sets.Items[i].Namespace, Name: group}] = true
		}
	}
	return groups, nil
}

// Problems are the mistakes that stall a group, as its object and its StatefulSets have them now.
func Problems(ctx context.Context, reader client.Reader, namespace, name string) ([]decision.Problem, error) {
	group, list := &v1alpha1.RolloutGroup{}, &appsv1.StatefulSetList{}
	err := errors.Join(reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, group), reader.List(ctx, list, client.InNamespace(namespace)))
	if err != nil {
		return nil, fmt.Errorf("read group %s: %w", name, err)
	}
	var sets []*appsv1.StatefulSet
	for i := range list.Items {
		if groupOf(&list.Items[i]) == name {
			sets = append(sets, &list.Items[i])
		}
	}
	return decision.ProblemsOf(group, sets), nil
}

// explanationOf is what the status of a group says.
func explanationOf(group *v1alpha1.RolloutGroup) decision.Explanation {
	e := decision.ExplanationOf(group)
	e.Automatic = isUntouched(group)
	return e
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
