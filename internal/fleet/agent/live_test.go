package agent_test

import (
	"testing"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
)

// From an Assemblage to what runs, with bindings; then another version of it, then
// nothing.
func TestASyncFromItsBeginningToItsEnd(t *testing.T) {
	w := newWorld(t)
	w.manage()
	first, second := w.publish("v1"), w.publish("v2")
	more := "bindings: [{name: region, value: eu}]\npackage: {kustomize: {substitute: {region: '$(region)-1'}}}"
	w.assign("c1", w.sync("shop", "v1", more))
	s := w.becomes("c1", "shop", "shop-v1", v1alpha1.StateSucceeded, "applied "+first)
	if s.Resolved != first || s.LastSucceededRevision != "shop-v1" || s.LastTransitionTime == nil {
		t.Errorf("%+v", s)
	}
	w.data("app", map[string]string{"version": "v1", "region": "eu-1"})
	w.assign("c1", w.sync("shop", "v2", more))
	w.becomes("c1", "shop", "shop-v2", v1alpha1.StateSucceeded, "applied "+second)
	w.data("app", map[string]string{"version": "v2", "region": "eu-1"})
	w.has(1, 1)
	w.remove(&v1alpha1.Assemblage{}, "c1")
	w.gone(&v1alpha1.Assemblage{}, "c1")
	w.data("app", nil)
	w.has(0, 0)
}
