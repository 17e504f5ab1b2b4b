package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/manager"
)

// What a tenant writes on its own workloads delays no workload of another tenant.
func TestATenantDelaysNoOtherTenant(t *testing.T) {
	for name, record := range map[string]string{
		"a record of the future":   time.Now().AddDate(70, 0, 0).UTC().Format(time.RFC3339),
		"a record of this moment":  time.Now().UTC().Format(time.RFC3339),
		"a record that is renewed": time.Now().Add(9 * time.Minute).UTC().Format(time.RFC3339),
	} {
		t.Run(name, func(t *testing.T) {
			w, tenant := newWorld(t), newNamespace(t)
			w.options.Namespaces = append(w.options.Namespaces, tenant)
			w.options.UpdateRate, w.options.UpdateBurst, w.options.MaxRolling = 1.0/3600, 1, 1
			// Its Pods are never ready, its hash is never written, and it says that it was.
			hostile := deployment("hostile", envFrom(configMapRef("none")), native+"config-change", fmt.Sprintf(`{"at":%q}`, record), native+"pause", "true")
			w.apply(inNamespace(hostile, tenant), inNamespace(gated(deployment("gated", envFrom(configMapRef("none")))), tenant))
			w.configMap("app", "a", "1")
			w.manage()
			w.apply(deployment("web", envFrom(configMapRef("app"))))
			w.hashed("web", "")
		})
	}
}

func inNamespace(manifest, namespace string) string {
	return replaceOnce(manifest, "metadata: {name: ", "metadata: {namespace: "+namespace+", name: ")
}

// What was rolled is recorded before it is rolled, and a new manager goes on from there.
func TestTheBudgetOutlivesTheManager(t *testing.T) {
	w := newWorld(t)
	w.options.MaxRolling = 1
	w.configMap("app", "a", "1")
	stuck := "nodeSelector: {none: here}\n" + envFrom(configMapRef("app"))
	w.apply(deployment("a", stuck))
	w.manage()
	w.hashed("a", "")
	w.apply(deployment("b", envFrom(configMapRef("app"))))
	w.eventually(func() error { return want("BudgetExhausted", string(w.explain("b").Reason)) })
	w.halt()
	w.annotate("a", native+"config-change", "-") // its users cannot free the place
	w.manage()
	w.apply(deployment("c", envFrom(secretRef("none"))))
	w.saysEventually("c", "Secret none not found")
	if h := w.hash("b"); h != "" {
		t.Error("a restart has freed the place of what is rolling")
	}
	if e := w.explain("b"); e.Reason != "BudgetExhausted" || e.Position != 1 {
		t.Errorf("explain says %s", e.Sentence)
	}
	lease := &coordinationv1.Lease{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: config.BudgetLease(manager.LeaseName)}, lease); err != nil {
		t.Fatal(err)
	}
	if record := lease.Annotations[native+"config-budget"]; !strings.Contains(record, string(w.deploymentNow("a").UID)) {
		t.Errorf("the record says %s", record)
	}
}
