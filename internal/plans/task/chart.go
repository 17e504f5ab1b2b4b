package task

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/render"
)

// The annotations of Helm that plans follow.
const (
	hookAnnotation   = "helm.sh/hook"
	weightAnnotation = "helm.sh/hook-weight"
	policyAnnotation = "helm.sh/hook-delete-policy"
	keepAnnotation   = "helm.sh/resource-policy"
)

// charted are the objects of the chart of the task: those of its hook in the order of their
// weights, or those of no hook.
func (w *work) charted() ([]*unstructured.Unstructured, error) {
	archive, err := w.template(w.spec.Chart)
	if err != nil {
		return nil, err
	}
	values, err := w.template(w.spec.Values)
	if err != nil {
		return nil, err
	}
	all, err := w.o.Rendered.Chart(&render.Chart{Name: w.spec.Chart, Archive: archive, ValuesName: w.spec.Values, Values: values}, w.context())
	if err != nil {
		return nil, err
	}
	if len(all) > MaxObjects {
		return nil, fmt.Errorf("chart %s makes too many objects: an Instance may have %d", w.spec.Chart, MaxObjects)
	}
	all = slices.DeleteFunc(all, func(u *unstructured.Unstructured) bool { return !isOfHook(u, w.spec.Hook) })
	object.Sort(all)
	if w.spec.Hook != "" {
		slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int { return weight(a) - weight(b) })
	}
	return all, nil
}

// isOfHook reports whether an object is of a hook, of none if that is empty.
func isOfHook(u *unstructured.Unstructured, hook string) bool {
	names := u.GetAnnotations()[hookAnnotation]
	if names == "" || hook == "" {
		return names == hook
	}
	return slices.ContainsFunc(strings.Split(names, ","), func(name string) bool { return strings.TrimSpace(name) == hook })
}

func weight(u *unstructured.Unstructured) int {
	n, _ := strconv.Atoi(u.GetAnnotations()[weightAnnotation]) // as Helm reads it
	return n
}

// isMadeAgain reports whether an object of a hook that exists is deleted before the hook runs, as
// Helm does unless the chart says otherwise.
func (w *work) isMadeAgain(u *unstructured.Unstructured) bool {
	policies := u.GetAnnotations()[policyAnnotation]
	return w.spec.Chart != "" && w.spec.Hook != "" && (policies == "" || strings.Contains(policies, "before-hook-creation"))
}

// staysWithoutInstance reports whether an object of a chart is not deleted with it.
func (w *work) staysWithoutInstance(u *unstructured.Unstructured) bool {
	return w.spec.Chart != "" && (object.RefOf(u).GroupKind() == object.CRDKind || isKeptByChart(u))
}

// deletions are the objects that the task deletes.
func (w *work) deletions() ([]*unstructured.Unstructured, error) {
	objects, err := w.objects(w.spec.Resources)
	return slices.DeleteFunc(objects, w.staysWithoutInstance), err
}

func isKeptByChart(u *unstructured.Unstructured) bool {
	return u.GetAnnotations()[keepAnnotation] == "keep"
}
