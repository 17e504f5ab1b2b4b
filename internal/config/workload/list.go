package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// List returns the relevant workloads of some namespaces, sorted by namespace,
// kind and name. The empty namespace stands for all.
func List(ctx context.Context, reader client.Reader, namespaces []string) ([]client.Object, error) {
	return ListWith(ctx, reader, namespaces, func(client.Object) bool { return false })
}

// ListWith is [List] with some more workloads.
func ListWith(ctx context.Context, reader client.Reader, namespaces []string, more func(client.Object) bool) ([]client.Object, error) {
	var objects []client.Object
	for _, namespace := range namespaces {
		found, err := listIn(ctx, reader, namespace, more)
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
	slices.SortFunc(objects, byName)
	return objects, nil
}

func listIn(ctx context.Context, reader client.Reader, namespace string, more func(client.Object) bool) ([]client.Object, error) {
	found := &lists{more: more}
	for _, list := range found.all() {
		if err := reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list workloads: %w", err)
		}
	}
	return found.relevant(), nil
}

// Preview returns the workloads that [List] returns first, as far as the first pages of the lists
// show them: none that another may still come before. page sets a list to its first page, and is false if
// there is none.
func Preview(page func(client.ObjectList) bool) []client.Object {
	found := &lists{}
	for _, list := range found.all() {
		if !page(list) {
			return nil
		}
	}
	objects := found.relevant()
	for _, list := range found.all() {
		if last := lastOf(list); last != nil && list.GetContinue() != "" {
			objects = slices.DeleteFunc(objects, func(obj client.Object) bool { return byName(obj, last) > 0 })
		}
	}
	slices.SortFunc(objects, byName)
	return objects
}

// lastOf is the last object of a list, nil if it is empty.
func lastOf(list client.ObjectList) (last client.Object) {
	_ = apimeta.EachListItem(list, func(item runtime.Object) error {
		last, _ = item.(client.Object)
		return nil
	})
	return last
}

// lists are those of all kinds of workloads.
type lists struct {
	deployments  appsv1.DeploymentList
	statefulSets appsv1.StatefulSetList
	daemonSets   appsv1.DaemonSetList
	// more is true of workloads that are relevant besides, nil if none is.
	more func(client.Object) bool
}

func (l *lists) all() []client.ObjectList {
	return []client.ObjectList{&l.deployments, &l.statefulSets, &l.daemonSets}
}

func (l *lists) relevant() []client.Object {
	objects := appendRelevant[appsv1.Deployment](nil, l.deployments.Items, l.more)
	objects = appendRelevant[appsv1.StatefulSet](objects, l.statefulSets.Items, l.more)
	return appendRelevant[appsv1.DaemonSet](objects, l.daemonSets.Items, l.more)
}

func appendRelevant[T any, P interface {
	*T
	client.Object
}](objects []client.Object, items []T, more func(client.Object) bool) []client.Object {
	for i := range items {
		if obj := P(&items[i]); IsRelevant(obj) || more != nil && more(obj) {
			objects = append(objects, obj)
		}
	}
	return objects
}

// byName orders workloads by namespace, kind and name.
func byName(a, b client.Object) int {
	return cmp.Or(
		strings.Compare(a.GetNamespace(), b.GetNamespace()),
		strings.Compare(KindOf(a), KindOf(b)),
		strings.Compare(a.GetName(), b.GetName()),
	)
}

// IsRelevant is true for workloads that the ring may have to change: those that
// mention tracking, and those on which the ring or wave left something to remove.
func IsRelevant(obj client.Object) bool {
	annotations := obj.GetAnnotations()
	_, _, tracked := vocabulary.ConfigTracked.Lookup(annotations)
	_, _, disabled := vocabulary.SchedulingDisabled.Lookup(annotations)
	_, _, marked := vocabulary.Suspended.Lookup(annotations)
	_, _, conditioned := vocabulary.ConfigStatus.Lookup(annotations)
	_, _, failed := vocabulary.ConfigFailed.Lookup(annotations)
	_, _, pinned := vocabulary.Pins.Lookup(TemplateOf(obj).Annotations)
	return pinned || tracked || disabled || marked || conditioned || failed ||
		SuspensionOf(obj).IsSuspended() || hasFinalizer(obj)
}

func hasFinalizer(obj client.Object) bool {
	return slices.Contains(obj.GetFinalizers(), vocabulary.ConfigFinalizer)
}
