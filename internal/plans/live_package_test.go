package plans_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/spillway-dev/spillway/internal/packages"
)

// The example package is installed, changed by its parameters, and removed.
func TestTheExamplePackage(t *testing.T) {
	c := newCluster(t)
	p, err := packages.Load("../../examples/packages/greeter")
	if err != nil {
		t.Fatal(err)
	}
	version, err := p.VersionObject()
	if err != nil {
		t.Fatal(err)
	}
	version.Namespace = c.namespace
	if err := c.client.Create(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	c.manage()
	c.instance("hello", version.Name, "GREETING", "Good morning", "LABELS", "tier: back")
	c.rests("hello", "deploy Complete")
	if got := c.data("hello-page")["index.html"]; got != "Good morning" {
		t.Errorf("the page says %q", got)
	}
	web := &appsv1.Deployment{}
	if err := c.get(web, "hello"); err != nil {
		t.Fatal(err)
	}
	if web.Status.ReadyReplicas != 2 || web.Spec.Template.Labels["tier"] != "back" {
		t.Errorf("%d Pods with the labels %v", web.Status.ReadyReplicas, web.Spec.Template.Labels)
	}
	c.change("hello", set("REPLICAS", "3"))
	c.rests("hello", "deploy Complete, update Complete")
	if err := c.get(web, "hello"); err != nil || web.Status.ReadyReplicas != 3 {
		t.Errorf("%d Pods are ready: %v", web.Status.ReadyReplicas, err)
	}
}
