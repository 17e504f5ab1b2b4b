package manifests_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/manifests"
)

// TestTheNameIsThatOfAll installs everything by another name: no object has the old one, and none
// refers to an object that has it.
func TestTheNameIsThatOfAll(t *testing.T) {
	const values = "fullnameOverride: acme\nrings: [config, zones, plans, fleet]\npinNamespaces: [shop]\npackageKinds: true\n" +
		"webhooks: {certificateSource: cert-manager, clientCA: callers, hosts: [rollout-operator.mimir.svc]}\n" +
		"metrics: {serviceMonitor: true, prometheusRule: true, grafanaDashboards: true}\n" + routed + "}, ingress: {enabled: true, host: spillway.example.com}}"
	kept := []string{"spillway-webhooks-certificate", "spillway-webhooks-keys"} // Secrets, which others fill
	for _, obj := range objectsOf(t, values) {
		name := obj.GetName()
		if !strings.HasPrefix(name, "acme") && !strings.HasPrefix(name, "spillway-system") && obj.GetKind() != "CustomResourceDefinition" && !slices.Contains(kept, name) {
			t.Errorf("%s %s does not have the name", obj.GetKind(), name)
		}
	}
	all := rendered(t, values)
	for _, old := range []string{
		`"serviceAccountName":"spillway`, `"kind":"ServiceAccount","name":"spillway"`, `"name":"spillway-webhooks"`, `"name":"spillway-dashboard"`, ":spillway'", "'spillway-dashboard'",
		"spillway-webhooks.spillway-system.svc", "spillway-system/spillway-webhooks",
	} {
		if i := strings.Index(all, old); i >= 0 {
			t.Errorf("%s is left in %s", old, all[max(0, i-200):min(len(all), i+200)])
		}
	}
	if !strings.Contains(all, `"--webhook-host=acme-webhooks.spillway-system.svc,rollout-operator.mimir.svc"`) || !strings.Contains(all, `"acme-webhooks.spillway-system.svc"`) {
		t.Error("the certificate is not for the name of the Service")
	}
	if all := rendered(t, "nameOverride: acme"); !strings.Contains(all, `"--webhook-host=acme-webhooks.spillway-system.svc"`) {
		t.Error("the manager makes no certificate for the name of the Service")
	}
	for _, wrong := range []string{"Acme", "1st", "a.b", "x' || true", strings.Repeat("a", 41)} {
		if _, err := manifests.ParseValues([]byte("fullnameOverride: \"" + wrong + "\"")); err == nil {
			t.Errorf("%q is no mistake", wrong)
		}
	}
}
