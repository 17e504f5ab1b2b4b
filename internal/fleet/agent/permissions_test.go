package agent_test

import (
	"testing"
	"time"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/agent"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// TestEveryPermissionIsUsedAndNoOtherIsNeeded tells the story with nothing but the
// generated role, and compares what was granted with what was asked for.
func TestEveryPermissionIsUsedAndNoOtherIsNeeded(t *testing.T) {
	w := newWorld(t)
	rules, err := manifests.Rules([]string{manager.RingAssemblage})
	if err != nil {
		t.Fatal(err)
	}
	user := "manager-of-" + w.namespace
	testenv.Grant(t, w.client, w.namespace, user, rules)
	w.faults = fault.New()
	run(t, w.faults, w.cp.ConfigAs(user), manager.Options{
		Rings: []string{manager.RingAssemblage}, Namespaces: []string{w.namespace}, Assemblage: agent.Options{Now: time.Now},
	})
	tell(w, func() {})
	w.url = "oci://registry.test/" + w.namespace
	w.publish("v1")
	w.publish("v2")
	for _, tag := range []string{"v1", "v2"} {
		s := w.sync("shop", tag, "")
		s.Source = &v1alpha1.Source{OCI: &v1alpha1.OCISource{URL: w.url, Version: v1alpha1.OCIVersion{Tag: tag}}}
		w.assign("c2", s)
		w.becomes("c2", "shop", "shop-"+tag, v1alpha1.StateSucceeded, "")
		w.has(1, 1)
	}
	for _, prefix := range []string{"v1/", "v2/"} {
		w.assign("c2", w.bucket(prefix))
		w.becomes("c2", "shop", "shop-"+prefix, v1alpha1.StateSucceeded, "")
	}
	w.url = "https://charts.test/" + w.namespace
	w.publishCharts()
	for _, version := range []string{"1.0.0", "1.1.0"} {
		w.assign("c2", w.release(version, values))
		w.becomes("c2", "shop", "shop-"+version, v1alpha1.StateSucceeded, "")
	}
	w.assign("c2")
	w.hasCharts(0, 0, 0)
	testenv.Exactly(t, testenv.Permissions(rules), w.faults.Requests)
}
