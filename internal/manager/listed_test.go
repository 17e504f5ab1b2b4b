package manager_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	controllerruntime "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spillway-dev/spillway/internal/metrics"
)

// described is what a registry says of a metric.
var described = regexp.MustCompile(`fqName: "([^"]*)".* variableLabels: \{([^}]*)\}`)

// libraries are the beginnings of the names that libraries register.
var libraries = []string{"certwatcher_", "controller_runtime_", "go_", "leader_election_", "process_", "rest_client_", "workqueue_"}

// TestRegisteredMetricsAreListed checks that a manager serves no metric of its own that is not
// in the list, none with other labels, and all of the list.
func TestRegisteredMetricsAreListed(t *testing.T) {
	t.Parallel()
	listed := map[string][]string{}
	for _, m := range metrics.All() {
		listed[m.Name] = m.Labels
	}
	registry, ok := controllerruntime.Registry.(prometheus.Collector)
	if !ok {
		t.Fatalf("the registry is a %T", controllerruntime.Registry)
	}
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		registry.Describe(descs)
	}()
	for desc := range descs {
		found := described.FindStringSubmatch(desc.String())
		if found == nil {
			t.Fatalf("cannot read %s", desc)
		}
		name, labels := found[1], strings.FieldsFunc(found[2], func(r rune) bool { return r == ',' || r == ' ' })
		want, known := listed[name]
		switch delete(listed, name); {
		case known && !slices.Equal(labels, want):
			t.Errorf("%s has the labels %v, listed are %v", name, labels, want)
		case !known && !slices.ContainsFunc(libraries, func(prefix string) bool { return strings.HasPrefix(name, prefix) }):
			t.Errorf("%s is not in internal/metrics", name)
		}
	}
	for name := range listed {
		t.Errorf("%s is listed, and not registered", name)
	}
}
