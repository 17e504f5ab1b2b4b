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

// What Spillway has no field for is said in the words of Flux, and Flux does it; one module waits for another.
func TestFluxDoesWhatIsHandedThrough(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.publishFiles("v1", map[string]string{"cm.yaml": w.configMap("app", "{version: v1}")})
	spec := "package: {kustomize: {spec: {namePrefix: eu-, commonMetadata: {labels: {team: shop}}, patches: [{target: {kind: ConfigMap}, patch: '[{\"op\": \"add\", \"path\": \"/data/patched\", \"value\": \"yes\"}]'}]}}}"
	w.assign("c1", w.sync("late", "v1", "dependsOn: [base]\npackage: {kustomize: {spec: {namePrefix: late-}}}"))
	w.becomes("c1", "late", "late-v1", v1alpha1.StateWaiting, "dependency '"+w.namespace+"/c1-base' not found")
	w.data("late-app", nil)
	w.assign("c1", w.sync("late", "v1", "dependsOn: [base]\npackage: {kustomize: {spec: {namePrefix: late-}}}"), w.sync("base", "v1", spec))
	w.becomes("c1", "base", "base-v1", v1alpha1.StateSucceeded, "")
	w.data("eu-app", map[string]string{"version": "v1", "patched": "yes"})
	w.becomes("c1", "late", "late-v1", v1alpha1.StateSucceeded, "")
	w.data("late-app", map[string]string{"version": "v1"})
	w.remove(&v1alpha1.Assemblage{}, "c1")
	w.gone(&v1alpha1.Assemblage{}, "c1")
	w.data("eu-app", nil)
	w.data("late-app", nil)
}
