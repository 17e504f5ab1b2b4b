package simulate_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/internal/simulate"
)

// Before Kubernetes 1.37 the API server keeps no maxUnavailable of StatefulSets, unless
// the spec says, and their controller goes from one Pod to the next. Each is ready
// after a minute.
func TestOtherVersionsOfKubernetes(t *testing.T) {
	t.Parallel()
	spec := "{replicas: 4, podManagementPolicy: Parallel, updateStrategy: {rollingUpdate: {maxUnavailable: 2}}}"
	for _, test := range []struct {
		version string
		minutes int
	}{{"", 2}, {"v1.37.0", 2}, {"v1.38.1-gke.100", 2}, {"v1.36.2", 4}, {"v1.30.0", 4}} {
		o := benchOptions()
		o.Version, o.Readiness.Default = test.version, time.Minute
		before, after := modelledAs(t, "StatefulSet", spec, "1"), modelledAs(t, "StatefulSet", spec, "2")
		r, err := simulate.Run(t.Context(), []*unstructured.Unstructured{before}, []*unstructured.Unstructured{after}, o)
		if err != nil {
			t.Fatal(err)
		}
		if wanted := time.Duration(test.minutes) * time.Minute; time.Duration(r.Took) != wanted || !r.Settled {
			t.Errorf("%s: takes %s, not %s; settled: %t", test.version, time.Duration(r.Took), wanted, r.Settled)
		}
	}
	gated := &appsv1.StatefulSet{}
	gated.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: new(intstr.FromInt32(1))}
	if keeps, err := simulate.KeepsMaxUnavailable("v1.36.2", gated); err != nil || !keeps {
		t.Errorf("what a cluster keeps it does not keep here: %v", err)
	}
	o := benchOptions()
	o.Version = "new"
	if _, err := simulate.Run(t.Context(), nil, []*unstructured.Unstructured{modelledAs(t, "Deployment", "", "1")}, o); err == nil || !strings.Contains(err.Error(), "version of the API server") {
		t.Errorf("%v", err)
	}
}

// A group of type OnDelete comes to its end where the controller does not advance the
// revision automatically.
func TestGroupsOfAnOlderKubernetes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"zones-on-delete", "zones-partition", "zones-order"} {
		base, change := objects(read(t, name, "base.yaml")), objects(read(t, name, "change.yaml"))
		steps := map[string]int{}
		for _, version := range []string{"v1.30.0", "v1.37.0"} {
			o := benchOptions()
			o.Version = version
			r, err := simulate.Run(t.Context(), base, change, o)
			if err != nil {
				t.Fatal(err)
			}
			if steps[version] = len(r.Steps); !r.Settled || len(r.Stuck) > 0 || len(r.Steps) == 0 {
				t.Errorf("%s with %s: settled: %t, stuck: %v, %d steps", name, version, r.Settled, r.Stuck, len(r.Steps))
			}
		}
		if steps["v1.30.0"] != steps["v1.37.0"] {
			t.Errorf("%s: %v", name, steps)
		}
	}
}
