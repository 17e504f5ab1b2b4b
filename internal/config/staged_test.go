package config_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

const (
	policyKinds = "../../charts/spillway/generated/config"
	gateKinds   = "../../charts/spillway/generated/gates"
)

// installPolicies makes the kinds of policies, of their gates and of records known to the API server, once.
// Another test may install them at the same time: then it finds them, when it looks again.
var installPolicies = sync.OnceValue(func() error {
	meets := func(err error) bool { return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) }
	return retry.OnError(retry.DefaultBackoff, meets, func() error {
		_, err := envtest.InstallCRDs(testenv.Shared().Config(), envtest.CRDInstallOptions{
			Paths: []string{policyKinds, gateKinds}, ErrorIfPathMissing: true,
		})
		return err
	})
})

const oneFirst = "stages: [{name: first, workloads: 1}, {name: rest}]"

// policy applies a ConfigPolicy with a spec.
func (w *world) policy(name, spec string) {
	w.t.Helper()
	if err := installPolicies(); err != nil {
		w.t.Fatal(err)
	}
	w.apply("apiVersion: spillway.dev/v1alpha1\nkind: ConfigPolicy\nmetadata: {name: " + name + "}\nspec:\n  " + spec)
}

// status is the status of a ConfigPolicy.
func (w *world) status(name string) v1alpha1.ConfigPolicyStatus {
	w.t.Helper()
	p := &v1alpha1.ConfigPolicy{}
	if err := w.get(p, name); err != nil {
		w.t.Fatal(err)
	}
	return p.Status
}

// phase waits until the releases of a policy have a phase, and returns the first.
func (w *world) phase(policy, phase string) v1alpha1.ConfigRelease {
	w.t.Helper()
	w.eventually(func() error {
		s := w.status(policy)
		if s.Phase != phase {
			return fmt.Errorf("policy %s is %s: %s", policy, s.Phase, s.WaitingFor)
		}
		if complete := apimeta.IsStatusConditionTrue(s.Conditions, "Complete"); complete != (phase == "Complete") {
			return fmt.Errorf("policy %s has condition Complete %v", policy, complete)
		}
		return want(true, apimeta.IsStatusConditionTrue(s.Conditions, "Ready"))
	})
	if r := w.status(policy).Releases; len(r) > 0 {
		return r[0]
	}
	return v1alpha1.ConfigRelease{}
}

// staged are Deployments that share the Secret db, in a world with a policy.
func staged(t *testing.T, spec string, names ...string) (*world, *kubelets) {
	t.Helper()
	w := newWorld(t)
	w.policy("staged", spec)
	k := shared(w, names...)
	w.phase("staged", "Complete")
	return w, k
}

// One workload goes first. If it fails no other one ever runs the bad value; a good value gets
// to all of them.
func TestOneWorkloadGoesFirst(t *testing.T) {
	w, k := staged(t, oneFirst, five...)
	w.secret("db", "p", "bad")
	w.stopped("app1", five[1:]...)
	r := w.phase("staged", "Failed")
	if r.Updated != "0/5" || r.Namespace != w.namespace || !strings.HasPrefix(r.Object, "Secret db@") || len(r.Stages) != 2 || r.Stages[0].Phase != "Failed" {
		t.Errorf("release %+v", r)
	}
	w.rests(func() {})
	if ran := k.ranWith("bad"); !slices.Equal(ran, five[:1]) {
		t.Errorf("%v ran the bad value", ran)
	}
	w.secret("db", "p", "good2")
	w.ready(five...)
	w.phase("staged", "Complete")
	if ran := k.ranWith("good2"); !slices.Equal(ran, five) {
		t.Errorf("%v ran the good value", ran)
	}
	w.rests(func() {})
}

// The others wait until the first is ready, and say so.
func TestTheOthersWaitForTheFirst(t *testing.T) {
	w, k := staged(t, oneFirst, "app1", "app2", "app3")
	w.secret("db", "p", "hangs")
	w.saysWhy("app2", "WaitingForPrevious", "ConfigPolicy staged holds Secret db@", "stage first has 0 of 1 ready, deployment/app1 is ")
	w.phase("staged", "Progressing")
	w.rests(func() {})
	if ran := k.ranWith("hangs"); !slices.Equal(ran, []string{"app1"}) {
		t.Errorf("%v ran the value", ran)
	}
	w.policy("staged", "onFailure: Continue") // without stages, and all may go
	w.eventually(func() error { return want("app1 app2 app3", strings.Join(k.ranWith("hangs"), " ")) })
}

func (w *world) saysWhy(name, reason string, texts ...string) {
	w.t.Helper()
	w.eventually(func() error {
		e := w.explain(name)
		if string(e.Reason) != reason {
			return fmt.Errorf("%s: %s: %s", name, e.Reason, e.Sentence)
		}
		for _, text := range texts {
			if !strings.Contains(e.Sentence, text) {
				return fmt.Errorf("%s says %q, want %q", name, e.Sentence, text)
			}
		}
		return nil
	})
}

// Stages by labels follow one another, within their budgets.
func TestStagesByLabels(t *testing.T) {
	w := newWorld(t)
	w.policy("staged", "stages: [{name: dev, selector: {matchLabels: {env: dev}}}, {name: prod, maxUnavailable: 1}]")
	k := startKubelets(w)
	w.secret("db", "p", "good")
	names := []string{"app1", "app2", "app3", "app4"}
	for i, name := range names {
		env := "prod"
		if i > 1 {
			env = "dev"
		}
		w.apply(still(replaceOnce(deployment(name, envFrom(secretRef("db"))), "metadata: {name: "+name, "metadata: {labels: {env: "+env+"}, name: "+name)))
	}
	w.manage()
	w.ready(names...)
	w.secret("db", "p", "hangs")
	w.saysWhy("app1", "WaitingForPrevious", "stage dev has 0 of 2 ready")
	w.eventually(func() error {
		if s := w.status("staged"); s.Phase != "Progressing" || !strings.Contains(s.WaitingFor, "not ready") {
			return fmt.Errorf("%s: %s", s.Phase, s.WaitingFor)
		}
		return nil
	})
	w.rests(func() {})
	if ran := k.ranWith("hangs"); !slices.Equal(ran, names[2:]) {
		t.Errorf("%v ran the value", ran)
	}
	w.policy("staged", "stages: [{name: dev, selector: {matchLabels: {env: none}}}, {name: prod, maxUnavailable: 3}]")
	w.eventually(func() error { return want("app1 app3 app4", strings.Join(k.ranWith("hangs"), " ")) })
	w.saysWhy("app2", "BudgetExhausted", "3 of 3 allowed unavailable in stage prod")
	w.secret("db", "p", "fine")
	w.ready(names...)
	if ran := k.ranWith("fine"); !slices.Equal(ran, names) {
		t.Errorf("%v ran the good value", ran)
	}
}

// A policy that is paused, closed or not valid holds what it is for, and nothing else; the end
// of that lets it go.
func TestAPolicyHolds(t *testing.T) {
	later := time.Now().UTC().Add(12 * time.Hour).Format("4 15 * * *")
	for name, test := range map[string]struct{ spec, reason, text string }{
		"paused":    {"pause: {by: alice, reason: lunch}", "Paused", "paused by alice: lunch"},
		"closed":    {"maintenanceWindows: [{schedule: '" + later + "', durationSeconds: 60}]", "OutsideWindow", "the next maintenance window opens on"},
		"not valid": {"maintenanceWindows: [{schedule: 'never', durationSeconds: 60}]", "InvalidInput", "maintenanceWindows[0]: must be a schedule"},
	} {
		t.Run(name, func(t *testing.T) {
			w, k := staged(t, "objects: [{name: other}]", "app1", "app2")
			before := w.hash("app1")
			w.policy("staged", test.spec+"\n  selector: {matchExpressions: [{key: free, operator: DoesNotExist}]}")
			w.patch(w.deploymentNow("app2"), "app2", `{"metadata":{"labels":{"free":"yes"}}}`)
			w.eventually(func() error { return want(int64(2), w.status("staged").ObservedGeneration) })
			w.secret("db", "p", "fine")
			w.hashed("app2", before)
			w.saysWhy("app1", test.reason, test.text)
			w.keepsHash("app1", before)
			w.policy("staged", oneFirst)
			w.hashed("app1", before)
			w.eventually(func() error { return want("app1 app2", strings.Join(k.ranWith("fine"), " ")) })
		})
	}
}

// keepsHash checks that a workload keeps its hash until the manager has come to rest.
func (w *world) keepsHash(name, hash string) {
	w.t.Helper()
	w.settled()
	if w.hash(name) != hash {
		w.t.Errorf("%s was rolled", name)
	}
}

// The others begin once the first has been ready for the time of the soak, also if another
// manager has to find that out.
func TestTheFirstSoaks(t *testing.T) {
	w, _ := staged(t, "soak: 1h\n  "+oneFirst, "app1", "app2")
	before := w.hash("app2")
	w.secret("db", "p", "fine")
	w.hashed("app1", before)
	w.saysWhy("app2", "Soaking", "stage first is ready; soaking until ")
	until := w.explain("app2").Until
	w.halt()
	w.manage()
	w.settled()
	w.phase("staged", "Waiting")
	if got := w.explain("app2").Until; until == nil || got == nil || !got.Equal(*until) {
		t.Errorf("it soaks until %v, and did until %v", got, until)
	}
	w.policy("staged", "soak: 1s\n  "+oneFirst)
	w.hashed("app2", before)
	w.phase("staged", "Complete")
}

// aStage is a world in which a bad value is to be stopped at the first of three workloads, by
// a policy.
func aStage(t *testing.T) (*world, *kubelets) {
	t.Helper()
	w := newWorld(t)
	w.options.CoalesceWindow = 0
	w.policy("staged", oneFirst)
	k := shared(w, "app1", "app2", "app3")
	w.phase("staged", "Complete")
	w.halt()
	w.secret("db", "p", "bad")
	return w, k
}

// TestFaultAStageTwoManagers has two managers that know nothing of each other.
func TestFaultAStageTwoManagers(t *testing.T) {
	for i := range 2 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			w, k := aStage(t)
			w.managedBy(fault.New())
			w.managedBy(fault.New())
			w.stopsAtOne(k, func() {})
			w.phase("staged", "Complete")
		})
	}
}
