package config_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/policy"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	described "github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/barrier"
)

// newCluster is a cluster of its own, with a manager of all namespaces. No controller runs
// there: tests write how Deployments do.
func newCluster(t *testing.T, namespaces ...string) *world {
	t.Helper()
	t.Parallel()
	cp, err := testenv.Shared().Beside(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cp.Stop() })
	w := &world{t: t, client: clientFor(t, cp.Config()), as: cp.Config(), namespace: namespaces[0], requests: &requests{}, options: defaultOptions("default"), clock: &barrier.Clock{}}
	w.options.Now, w.barrier = w.clock.Now, barrier.New(w.client, w.clock)
	w.options.Namespaces = nil
	for _, name := range namespaces {
		if err := w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// in is the same world, seen from another namespace.
func (w *world) in(namespace string) *world {
	other := *w
	other.namespace = namespace
	return &other
}

// becomes writes that all Pods of Deployments are ready, or that none is.
func (w *world) becomes(ready bool, names ...string) {
	w.t.Helper()
	for _, name := range names {
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // as its controller does: the manager may be writing an annotation
			d := w.deploymentNow(name)
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1}
			if ready {
				d.Status.ReadyReplicas, d.Status.AvailableReplicas = 1, 1
				d.Status.Conditions = []appsv1.DeploymentCondition{
					{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
					{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
				}
			}
			return w.client.Status().Update(w.t.Context(), d)
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// sharing makes Deployments that share the Secret db, and are ready with it.
func (w *world) sharing(names ...string) map[string]string {
	w.t.Helper()
	w.secret("db", "p", "good")
	hashes := map[string]string{}
	for _, name := range names {
		w.apply(deployment(name, envFrom(secretRef("db"))))
		hashes[name] = w.hashed(name, "")
		w.becomes(true, name)
	}
	return hashes
}

// The kinds of policies may be installed while the manager runs: from then on they are in
// force. A ClusterConfigPolicy stages each of its namespaces for itself, and a ConfigPolicy
// comes before it.
func TestClusterPolicies(t *testing.T) {
	w := newCluster(t, "shop", "bank", "lab")
	bank, lab := w.in("bank"), w.in("lab")
	w.manage()
	before := w.sharing("app1", "app2")
	bank.sharing("app1", "app2")
	lab.sharing("app1", "app2")

	testenv.InstallKinds(t, w.client, policyKinds+"/spillway.dev_*.yaml")
	w.apply("apiVersion: spillway.dev/v1alpha1\nkind: ClusterConfigPolicy\nmetadata: {name: careful}\nspec: {namespaces: [shop, bank], " + oneFirst + "}")
	lab.apply("apiVersion: spillway.dev/v1alpha1\nkind: ConfigPolicy\nmetadata: {name: own, namespace: lab}\nspec: {pause: {by: alice}}")
	careful := func() (*v1alpha1.ClusterConfigPolicy, error) {
		p := &v1alpha1.ClusterConfigPolicy{}
		return p, w.get(p, "careful")
	}
	w.eventually(func() error {
		p, err := careful()
		if err != nil {
			return err
		}
		return want("Complete", p.Status.Phase)
	})
	w.eventually(func() error {
		p := &v1alpha1.ConfigPolicy{}
		if err := lab.get(p, "own"); err != nil {
			return err
		}
		return want("Complete", p.Status.Phase)
	})

	for _, in := range []*world{w, bank, lab} {
		in.secret("db", "p", "next")
	}
	for _, in := range []*world{w, bank} {
		in.hashed("app1", before["app1"])
		in.becomes(false, "app1")
		in.saysWhy("app2", "WaitingForPrevious", "ClusterConfigPolicy careful holds Secret db@", "stage first has 0 of 1 ready")
	}
	lab.saysWhy("app1", "Paused", "paused by alice")
	w.becomes(true, "app1")
	w.hashed("app2", before["app2"])
	w.becomes(true, "app2")
	bank.saysWhy("app2", "WaitingForPrevious")
	w.eventually(func() error {
		p, err := careful()
		if err != nil {
			return err
		}
		s := p.Status
		if s.Phase != "Progressing" || s.Underway != 1 || s.Releases[0].Namespace != "bank" || s.Releases[0].Updated != "0/2" {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	asked, err := explain.Explain(t.Context(), explain.World{Client: w.client, Options: w.options}, described.Ref{Kind: "ClusterConfigPolicy", Name: "careful"})
	if err != nil {
		t.Fatal(err)
	}
	if said := asked.Links[0].Sentence; !strings.HasPrefix(said, "ClusterConfigPolicy careful: 1 release is under way: ") || asked.Root().Name != "app1" || len(asked.Facts) != 1 ||
		!strings.Contains(fmt.Sprint(asked.Facts[0].Values), " in bank: Progressing 0/2 (first Progressing 0/1, rest Waiting 0/1)") {
		t.Errorf("explain says %+v", asked)
	}
	bank.becomes(true, "app1")
	bank.hashed("app2", before["app2"])
	e, err := config.Explain(t.Context(), w.client, w.options, workloads.Name{Kind: "Deployment", Namespace: "lab", Name: "app2"})
	if err != nil || e.Policy != "ConfigPolicy lab/own" {
		t.Errorf("%+v %v", e, err)
	}
}

// policyNow is the default policy, nil if there is none.
func (w *world) policyNow() *v1alpha1.ClusterConfigPolicy {
	w.t.Helper()
	p := &v1alpha1.ClusterConfigPolicy{}
	err := w.get(p, "default")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// recorded waits until the manager has recorded that it created the default policy.
func (w *world) recorded() {
	w.t.Helper()
	w.eventually(func() error {
		l := &coordinationv1.Lease{}
		if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.options.LeaseNamespace, Name: config.BudgetLease(w.options.LeaseName)}, l); err != nil {
			return err
		}
		return want("default", l.Annotations[native+"default-policy"])
	})
}

// The manager creates the default policy once, also if its kind is installed later: one
// workload goes first. What a user makes of it stays: deleted or changed.
func TestTheDefaultPolicy(t *testing.T) {
	w := newCluster(t, "shop")
	w.options.DefaultPolicy = policy.Default()
	w.manage()
	before := w.sharing("app1", "app2")
	testenv.InstallKinds(t, w.client, policyKinds+"/spillway.dev_*.yaml")
	w.recorded()
	w.eventually(func() error {
		if p := w.policyNow(); p == nil || p.Status.Phase != "Complete" {
			return fmt.Errorf("the policy is %+v", p)
		}
		return nil
	})
	w.secret("db", "p", "next")
	w.hashed("app1", before["app1"])
	w.saysWhy("app2", "WaitingForPrevious", "ClusterConfigPolicy default holds Secret db@")

	if err := w.client.Delete(t.Context(), w.policyNow()); err != nil {
		t.Fatal(err)
	}
	w.hashed("app2", before["app2"])
	w.halt()
	w.manage()
	w.barrier.Wait(t) // no controller observes workloads here
	if p := w.policyNow(); p != nil {
		t.Errorf("it was created again: %+v", p)
	}
}

// A policy of that name that a user has created before stays as it is.
func TestTheDefaultPolicyOfAUser(t *testing.T) {
	w := newCluster(t, "shop")
	testenv.InstallKinds(t, w.client, policyKinds+"/spillway.dev_*.yaml")
	w.apply("apiVersion: spillway.dev/v1alpha1\nkind: ClusterConfigPolicy\nmetadata: {name: default}\nspec: {maxUnavailable: 7}")
	w.options.DefaultPolicy = policy.Default()
	w.manage()
	w.recorded()
	if s := w.policyNow().Spec; len(s.Stages) > 0 || s.MaxUnavailable.IntValue() != 7 {
		t.Errorf("the policy is %+v", s)
	}
}
