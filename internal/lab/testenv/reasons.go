package testenv

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// KnownReasons checks at the end of a test that all reasons are known that Spillway has
// given in a namespace: in its Events, in the conditions of objects of some kinds, given
// by empty lists of them, and in the metrics of this process.
func KnownReasons(t testing.TB, c client.Client, namespace string, kinds ...client.ObjectList) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		given, err := reasonsIn(context.WithoutCancel(t.Context()), c, namespace, kinds)
		if err != nil {
			t.Error(err)
		}
		for where, word := range given {
			if _, _, ok := reasons.Of(word); !ok {
				t.Errorf("%s has the reason %q, which is not in the table", where, word)
			}
		}
	})
}

// reasonsIn are the reasons by where they are.
func reasonsIn(ctx context.Context, c client.Client, namespace string, kinds []client.ObjectList) (map[string]string, error) {
	given := map[string]string{}
	events := &eventsv1.EventList{}
	if err := c.List(ctx, events, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list Events: %w", err)
	}
	for i := range events.Items {
		if e := &events.Items[i]; strings.HasPrefix(e.ReportingController, "spillway") {
			given["Event "+e.Name] = e.Reason
		}
	}
	for _, list := range kinds {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
		err := apimeta.EachListItem(list, func(obj runtime.Object) error { return addConditions(given, obj) })
		if err != nil {
			return nil, fmt.Errorf("read the conditions of %T: %w", list, err)
		}
	}
	return given, addLabels(given)
}

// addConditions adds those of an object: from its status if it is of Spillway's kinds,
// and from the annotation if it is a workload.
func addConditions(given map[string]string, obj runtime.Object) error {
	about, err := apimeta.Accessor(obj)
	if err != nil {
		return err //nolint:wrapcheck // the caller names the object
	}
	where := fmt.Sprintf("%T %s", obj, about.GetName())
	if note := vocabulary.ConfigStatus.Get(about.GetAnnotations()); note != "" {
		c := metav1.Condition{}
		if err := json.Unmarshal([]byte(note), &c); err != nil {
			return err //nolint:wrapcheck // the same
		}
		given[where+" annotation"] = c.Reason
	}
	if strings.HasPrefix(reflect.TypeOf(obj).Elem().PkgPath(), "k8s.io/") {
		return nil
	}
	raw, err := json.Marshal(obj)
	if err != nil {
		return err //nolint:wrapcheck // the same
	}
	seen := struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}{}
	if err := json.Unmarshal(raw, &seen); err != nil {
		return err //nolint:wrapcheck // the same
	}
	for _, c := range seen.Status.Conditions {
		given[where+" condition "+c.Type] = c.Reason
	}
	return nil
}

// addLabels adds those in the metrics.
func addLabels(given map[string]string) error {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return fmt.Errorf("gather metrics: %w", err)
	}
	for _, family := range families {
		name := family.GetName()
		if !slices.ContainsFunc([]string{"spillway_", "rollout_operator_"}, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		for i, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "reason" {
					given[fmt.Sprintf("metric %s %d", name, i)] = label.GetValue()
				}
			}
		}
	}
	return nil
}
