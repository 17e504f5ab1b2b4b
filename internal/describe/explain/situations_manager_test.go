package explain_test

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/zones/lock"
	"github.com/spillway-dev/spillway/rollout"
)

// longAgo is when the manager was last at work, or later.
const longAgo = 2 * time.Hour

// leftBehind is a manager for the namespace: its Deployment, and its Lease, which
// was held an hour ago.
func leftBehind(spec ...string) string {
	d := deployment("spillway", append(spec, "label: app.kubernetes.io/name: spillway", "label: app.kubernetes.io/component: manager",
		"container: args: [manager, --namespaces=NS, --leader-elect-namespace=NS]")...)
	return d + `---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: spillway-manager}
spec: {holderIdentity: spillway-5d9f_1, leaseDurationSeconds: 15, renewTime: "` + time.Now().Add(-time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z") + `"}
---
`
}

// left has a manager have taken the lock for a downscale a while ago, and not give it
// back.
func left(ago time.Duration) func(*world) {
	return func(w *world) {
		g := &v1alpha1.RolloutGroup{}
		w.changeStatus(g, "ingester", func() {
			lock.TakeForDownscale(&g.Status, v1alpha1.Downscale{Zone: "b", From: 2, To: 1, At: metav1.NewMicroTime(time.Now().Add(-ago))})
		})
		w.apply(zone("a", newer))
	}
}

// leftWaiting is left, by a manager that has recorded that the rollout waits for the lock.
func leftWaiting(ago time.Duration) func(*world) {
	return func(w *world) {
		left(ago)(w)
		g, at := &v1alpha1.RolloutGroup{}, metav1.NewMicroTime(time.Now().Add(-ago))
		w.changeStatus(g, "ingester", func() {
			g.Status.ObservedGeneration = g.Generation
			g.Status.Rollout = &record.Rollout{
				Phase: string(rollout.PhaseWaiting), Reason: string(rollout.ReasonLocked), WaitingFor: "a-0 is waiting: the group is locked", StartedAt: at, DecidedAt: at,
				Causes: []record.Cause{{State: ring.StateWaiting, Reason: string(rollout.ReasonLocked), Does: "is waiting", Why: "the group is locked", Count: 1, Units: []string{"a/a-0"}}},
			}
		})
	}
}

// revised makes the ModuleRevision of the module, as a manager does before anything else.
func (w *world) revised() {
	w.t.Helper()
	m := &fleetv1.Module{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "shop"}, m); err != nil {
		w.t.Fatal(err)
	}
	owner, template := *metav1.NewControllerRef(m, fleetv1.GroupVersion.WithKind(model.KindModule)), m.Spec.Template.Spec
	r := &v1alpha1.ModuleRevision{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: model.RevisionName(model.KindModule, m.Name, template)}}
	r.OwnerReferences = []metav1.OwnerReference{owner}
	r.Spec = v1alpha1.ModuleRevisionSpec{ModuleRef: v1alpha1.ModuleReference{Kind: model.KindModule, Name: m.Name}, Number: 1, Template: template}
	if err := w.client.Create(w.t.Context(), r); err != nil {
		w.t.Fatal(err)
	}
}

// managerSituations are objects that wait for nothing but the manager, which does not run.
var managerSituations = []situation{{
	name: "the lock is held by a manager that has just died", plant: leftBehind("spec: replicas: 0") + all(policy(""), zone("a"), zone("b")),
	act: leftWaiting(30 * time.Second), ago: longAgo, times: "since until",
	ask: "rolloutgroup/ingester", through: "RolloutGroup Lock Lease Deployment", root: "deployment/spillway", says: "is scaled to 0 replicas",
	next: "kubectl scale deployment/spillway -n NS --replicas=2",
}, {
	name: "the lock was left by a manager that is dead", plant: leftBehind("spec: replicas: 0") + all(policy(""), zone("a"), zone("b")),
	act: left(time.Hour), ago: longAgo,
	ask: "rolloutgroup/ingester", through: "RolloutGroup Lease Deployment", root: "deployment/spillway", says: "is scaled to 0 replicas",
	next: "kubectl scale deployment/spillway -n NS --replicas=2",
}, {
	name: "the manager crashes", plant: leftBehind(crash) + operator(deployment("web"), ""),
	ago: longAgo, ask: "instance/db", through: "Instance Lease Deployment Pod", root: "pod/spillway-*", says: "exited with code 1", next: "kubectl logs pod/NAME -n NS -c app --previous",
}, {
	name: "the manager does not renew its Lease", plant: leftBehind() + appAtOne + deployment("web", tracked, usesApp),
	ago: longAgo, ask: "deploy/web", root: "lease/spillway-manager", says: "spillway-5d9f_1 holds Lease spillway-manager, and has not renewed it since",
	next: "kubectl get pods -A -l app.kubernetes.io/name=spillway,app.kubernetes.io/component=manager",
}, {
	name: "a module is not taken away from a cluster that does not answer", plant: strings.Replace(module(""), "{name: shop}", "{name: shop, finalizers: [spillway.dev/module]}", 1) + `---
apiVersion: fleet.squaremo.dev/v1alpha1
kind: ProxyAssemblage
metadata: {name: c1}
spec:
  kubeconfigRef: {name: c1-kubeconfig}
  assemblage: {syncs: [{name: shop, revision: shop-1, source: {git: {url: "https://example.com/shop", version: {tag: v1}}}}]}
`,
	act: func(w *world) {
		w.cluster("c1", "https://127.0.0.1:1")
		a := &fleetv1.ProxyAssemblage{}
		w.changeStatus(a, "c1", func() {
			a.Status.Syncs = []fleetv1.SyncStatus{{Name: "shop", State: fleetv1.StateUnreachable, Reason: "Unreachable", Message: "connection refused"}}
		})
		w.delete(&fleetv1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shop"}})
	},
	ask: "module/shop", through: "Module ProxyAssemblage Secret", root: "secret/c1-kubeconfig", says: "cluster c1 is unreachable", next: "kubectl cluster-info --kubeconfig c1.kubeconfig",
}, {
	name: "who may not see Deployments everywhere", plant: operator(deployment("web"), ""), sees: []string{"instances.kudo.dev"},
	ask: "instance/db", root: "manager/spillway", says: "deployments cannot be read", next: "kubectl get deployments.apps -A",
}, {
	name: "a cluster is assigned something next", plant: leftBehind("spec: replicas: 0") + module(""), ago: longAgo, act: func(w *world) { w.cluster("c1", ""); w.revised() },
	ask: "module/shop@c1", through: "Cluster Module Lease Deployment", by: "c1 is assigned nothing yet", root: "deployment/spillway", says: "is scaled to 0 replicas", next: "kubectl scale deployment/spillway -n NS --replicas=2",
}, {
	name: "the manager looks elsewhere", plant: strings.ReplaceAll(leftBehind(), "--namespaces=NS", "--namespaces=elsewhere") + operator(deployment("web"), ""),
	ago: longAgo, ask: "instance/db", root: "manager/spillway", says: "none watches namespace NS", next: "kubectl edit deployment/spillway -n *",
}, {
	name: "the group was not made", plant: leftBehind("spec: replicas: 0") + zone("a"),
	ago: longAgo, ask: "rolloutgroup/ingester", through: "RolloutGroup Lease Deployment", root: "deployment/spillway", says: "is scaled to 0 replicas", next: "kubectl scale deployment/spillway -n NS --replicas=2",
}, {
	name: "the Module of a cluster was not seen", plant: leftBehind("spec: replicas: 0") + module(""), act: onCluster("c1"),
	ago: longAgo, ask: "module/shop@c1", through: "Cluster Module Lease Deployment", root: "deployment/spillway", says: "is scaled to 0 replicas", next: "kubectl scale deployment/spillway -n NS --replicas=2",
}, {
	name: "the Module was not seen", plant: leftBehind("spec: replicas: 0") + module(""), act: onCluster("c1"),
	ago: longAgo, ask: "module/shop", root: "deployment/spillway", says: "is scaled to 0 replicas", next: "kubectl scale deployment/spillway -n NS --replicas=2",
}}
