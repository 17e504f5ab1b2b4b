package config_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// A hash tells something about what it is of: who asks is answered with one only if she may read
// that herself. For others the ring sets it a moment later. It takes one question for each
// kind, and one for each object only of those who may not read all.
func TestAHashIsForWhoMayReadWhatIsHashed(t *testing.T) {
	w := newWorld(t)
	w.admit()
	w.configMap("app", "a", "1")
	w.configMap("other", "a", "1")
	w.secret("db", "a", "1")
	deployer := "deployer-of-" + w.namespace
	testenv.Grant(t, w.client, w.namespace, deployer, []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"app"}, Verbs: []string{"get"}},
	})
	admin, limited := w.client, clientFor(t, testenv.Shared().ConfigAs(deployer))
	for name, test := range map[string]struct {
		by        client.Client
		uses      []string
		hash      bool
		questions int
	}{
		"all by the admin":        {admin, []string{configMapRef("app"), configMapRef("other"), secretRef("db")}, true, 2},
		"what she may read":       {limited, []string{configMapRef("app")}, true, 2},
		"what she may not read":   {limited, []string{secretRef("db")}, false, 2},
		"one of which she may":    {limited, []string{configMapRef("app"), configMapRef("other")}, false, 3},
		"nothing":                 {limited, nil, true, 0},
		"what does not exist, or": {limited, []string{secretRef("guess")}, false, 2},
	} {
		w.requests.take()
		spec := "containers: [{name: c, image: x}]"
		if len(test.uses) > 0 {
			spec = envFrom(test.uses...)
		}
		d := &appsv1.Deployment{}
		decodeInto(t, d, deployment("web", spec))
		d.Namespace = w.namespace
		if err := test.by.Create(t.Context(), d, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		if got := d.Spec.Template.Annotations[waveHash] != ""; got != test.hash || len(d.Spec.Template.Spec.SchedulingGates) > 0 {
			t.Errorf("%s: hash %v, gates %v", name, got, d.Spec.Template.Spec.SchedulingGates)
		}
		questions := 0
		for _, request := range w.requests.take() {
			if strings.HasSuffix(request, asksForRights) {
				questions++
			}
			if !test.hash && strings.Contains(request, "/secrets/") {
				t.Errorf("%s: the manager asked for %s", name, request)
			}
		}
		if questions != test.questions {
			t.Errorf("%s: %d questions, want %d", name, questions, test.questions)
		}
	}

	d := &appsv1.Deployment{}
	decodeInto(t, d, deployment("later", envFrom(secretRef("db"))))
	d.Namespace = w.namespace
	if err := limited.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	w.hashed("later", "")

	rules, err := manifests.RulesOf(manager.RingConfig)
	if err != nil {
		t.Fatal(err)
	}
	if !testenv.Permissions(rules)["create localsubjectaccessreviews.authorization.k8s.io"] {
		t.Error("the ring may not ask")
	}
}
