package plans_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// phase is what the controller of the Widget does.
func (c *cluster) phase(name, phase string) {
	c.t.Helper()
	u := c.widgetOf(c.namespace, name, "")
	if err := c.client.Patch(c.t.Context(), u, client.RawPatch(types.MergePatchType, []byte(`{"status": {"phase": "`+phase+`"}}`))); err != nil {
		c.t.Fatal(err)
	}
}

// A package says by expressions when its custom resource is ready, and when it has failed: the plan waits, completes
// and fails by that, and so does Ready afterwards.
func TestARuleOfThePackageJudgesACustomResource(t *testing.T) {
	c := newCluster(t)
	const anything = "{type: object, x-kubernetes-preserve-unknown-fields: true}"
	c.definition("kinds-1", "[{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: "+anything+", status: "+anything+"}}}}]")
	c.manage()
	c.instance("kinds", "kinds-1")
	c.rests("kinds", "deploy Complete")
	ov := one("{apiVersion: " + c.group() + "/v1, kind: Widget, metadata: {name: app}, spec: {size: '{{ .Params.P }}'}}")
	c.operator("app-1", ov+`
health: [{group: `+c.group()+`, kind: Widget, ready: 'object.status.phase == "Running"', failed: 'has(object.status) && object.status.phase == "Broken"'}]`)
	c.instance("web", "app-1")
	c.waits("web", `waiting for Widget app: "object.status.phase == \"Running\"": condition: no such key: status`)
	c.phase("app", "Starting")
	c.waits("web", `it is false`)
	c.phase("app", "Running")
	c.rests("web", "deploy Complete")
	c.drifts("")

	c.phase("app", "Starting")
	c.waits("web", "waiting for Widget app")
	if ready := c.now("web").Status.Conditions[0]; ready.Type != "Ready" || ready.Status != "False" || ready.Reason != "WorkloadNotReady" {
		t.Errorf("%+v", ready)
	}
	c.phase("app", "Running")
	c.rests("web", "deploy Complete")
	c.drifts("")

	c.phase("app", "Broken")
	c.change("web", set("P", "b"))
	c.rests("web", "deploy Complete, update Failed")
	if got := c.now("web").Status.WaitingFor; !strings.Contains(got, `Widget app failed: "has(object.status) && object.status.phase == \"Broken\"" is true`) {
		t.Error(got)
	}

	c.operator("app-2", replace(ov, "version: ", "health: [{group: "+c.group()+", kind: Widget, ready: object.status.phase}]\nversion: "))
	c.phase("app", "Running")
	c.change("web", use("app-2"))
	c.waits("web", "waiting for Widget app: \"object.status.phase\": condition: it is a string, and must be true or false")
}
