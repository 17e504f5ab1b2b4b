package standing_test

import (
	"context"
	"errors"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/testenv"
)

func module(spec string) string {
	return `apiVersion: fleet.squaremo.dev/v1alpha1
kind: Module
metadata: {name: shop}
spec:
  selector: {}
  strategy: Incremental
  template: {spec: {sync: {source: {git: {url: "https://example.com/NS", version: {tag: v1}}}}}}
  ` + spec + "\n"
}

// cluster makes a cluster of the fleet, which is the hub itself unless a server is
// named.
func (w *world) cluster(name, server string) {
	w.t.Helper()
	k, err := clientcmd.LoadFromFile(testenv.Shared().Kubeconfig())
	if err == nil {
		err = errors.Join(clientcmd.ResolveLocalPaths(k), clientcmdapi.FlattenConfig(k))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range k.Clusters {
		if server != "" {
			c.Server = server
		}
	}
	raw, err := clientcmd.Write(*k)
	if err != nil {
		w.t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name + "-kubeconfig", Labels: map[string]string{"spillway.dev/cluster": "true", "cluster": name}},
		Data:       map[string][]byte{"value": raw},
	}
	if err := w.client.Create(w.t.Context(), secret); err != nil {
		w.t.Fatal(err)
	}
}

func onCluster(name string) func(*world) { return func(w *world) { w.cluster(name, "") } }

// fetched plays source-controller, and returns once the Kustomization of the module
// on cluster c1 is there.
func (w *world) fetched(ready metav1.ConditionStatus, message string) {
	w.t.Helper()
	w.eventually(func(ctx context.Context) error {
		var list sourcev1.GitRepositoryList
		if err := w.client.List(ctx, &list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return errors.New("there is no source yet")
		}
		s := &list.Items[0]
		s.Status.ObservedGeneration = s.Generation
		s.Status.Conditions = []metav1.Condition{{
			Type: "Ready", Status: ready, Reason: "GitOperation", Message: message, ObservedGeneration: s.Generation, LastTransitionTime: metav1.Now(),
		}}
		return w.client.Status().Update(ctx, s)
	})
}

// applied plays kustomize-controller, which has applied something, or could not.
func (w *world) applied(reason, message string, inventory ...string) {
	w.t.Helper()
	k := &kustomizev1.Kustomization{}
	w.changeStatus(k, "c1-shop", func() {
		k.Status.ObservedGeneration = k.Generation
		k.Status.Conditions = []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: k.Generation, LastTransitionTime: metav1.Now(),
		}}
		k.Status.Inventory = &kustomizev1.ResourceInventory{}
		for _, id := range inventory {
			k.Status.Inventory.Entries = append(k.Status.Inventory.Entries, kustomizev1.ResourceRef{ID: w.text(id), Version: "v1"})
		}
	})
}

const gated = `rollout: {stages: [{name: canary, gates: [{name: approve}]}]}`

// succeed plays whoever applies: all that is assigned has come through.
func (w *world) succeed() {
	w.t.Helper()
	w.eventually(func(ctx context.Context) error {
		a := &fleetv1.ProxyAssemblage{}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "c1"}, a); err != nil {
			return err
		}
		if len(a.Status.Syncs) > 0 && a.Status.Syncs[0].State == fleetv1.StateSucceeded {
			return nil
		}
		k := &kustomizev1.Kustomization{}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "c1-shop"}, k); err != nil {
			return err
		}
		k.Status.ObservedGeneration = k.Generation
		k.Status.LastAppliedRevision = "v1@sha1:1"
		k.Status.Conditions = []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "ReconciliationSucceeded", ObservedGeneration: k.Generation, LastTransitionTime: metav1.Now(),
		}}
		if err := w.client.Status().Update(ctx, k); err != nil {
			return err
		}
		return fmt.Errorf("it is not reported: %+v", a.Status.Syncs)
	})
}

func (w *world) decide(status metav1.ConditionStatus, message string) {
	w.t.Helper()
	w.eventually(func(ctx context.Context) error {
		var list v1alpha1.RolloutGateList
		if err := w.client.List(ctx, &list, client.InNamespace(w.namespace)); err != nil || len(list.Items) == 0 {
			return fmt.Errorf("there is no gate yet: %w", err)
		}
		g := &list.Items[0]
		g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.GatePassed, Status: status, Reason: "Decided", Message: message, LastTransitionTime: metav1.Now()}}
		return w.client.Status().Update(ctx, g)
	})
}

// fleetSituations are what a module waits for.
var fleetSituations = []situation{{
	name: "a gate is open", plant: module(`rollout: {stages: [{name: canary, gates: [{name: approve, when: Before}]}]}`), act: onCluster("c1"),
	ask: "module/shop", through: "Module Stage RolloutGate", root: "rolloutgate/shop-*", says: "gate approve of stage canary has not been decided",
	next: "spillway fleet approve module/shop -n NS --stage canary",
}, {
	name: "a gate was refused", plant: module(`rollout: {stages: [{name: canary, gates: [{name: approve, when: Before}]}]}`),
	act: func(w *world) { w.cluster("c1", ""); w.decide(metav1.ConditionFalse, "too many errors") },
	ask: "module/shop", root: "rolloutgate/shop-*", says: "was refused", next: "spillway fleet approve module/shop -n NS --stage canary",
}, {
	name: "a module is suspended", plant: module("suspend: true"), act: onCluster("c1"),
	ask: "module/shop", root: "module/shop", says: "spec.suspend is set", next: "spillway fleet resume module/shop -n NS",
}, {
	name: "no window of a module is open", plant: module(`rollout: {windows: [{schedule: "0 0 29 2 *", durationSeconds: 1}]}`), act: onCluster("c1"),
	ask: "module/shop", root: "module/shop", says: "no window is open until", next: "",
}, {
	name: "a cluster is pinned", plant: module("suspend: true"),
	act: func(w *world) {
		w.cluster("c1", "")
		w.apply(`apiVersion: fleet.squaremo.dev/v1alpha1
kind: ProxyAssemblage
metadata: {name: c1}
spec:
  kubeconfigRef: {name: c1-kubeconfig}
  assemblage: {syncs: [{name: shop, hold: {by: carol, reason: its disk is full}}]}
`)
	},
	ask: "module/shop@c1", root: "cluster/c1", says: "paused by carol", next: "spillway fleet release module/shop -n NS --cluster c1",
}, {
	name: "a cluster is not selected", plant: module("suspend: true"),
	ask: "module/shop@c9", root: "cluster/c9", says: "there is no cluster c9", next: "kubectl get secret/c9-kubeconfig -n NS --show-labels",
}, {
	name: "a cluster lacks a Secret, deep down", plant: module("") + "---\n" + deployment("web", still, needsDB),
	act: func(w *world) {
		w.cluster("c1", "")
		w.fetched(metav1.ConditionTrue, "")
		waiting("web", "CreateContainerConfigError", "")(w)
		w.applied("HealthCheckFailed", "timeout waiting for: [Deployment/NS/web status: 'InProgress']", "NS_web_apps_Deployment")
	},
	ask: "module/shop", through: "Module Stage Cluster ProxyAssemblage Kustomization Deployment Pod Secret", root: "secret/db@c1", says: "on cluster c1, Secret db does not exist",
	next: "kubectl create secret generic db -n NS --from-literal=password=VALUE --kubeconfig c1.kubeconfig",
}, {
	name: "what is to be applied cannot be fetched", plant: module(""),
	act: func(w *world) { w.cluster("c1", ""); w.fetched(metav1.ConditionFalse, "authentication required") },
	ask: "module/shop", root: "gitrepository/shop-*@c1", says: "cannot be fetched: authentication required", next: "kubectl describe gitrepository/NAME -n NS --kubeconfig c1.kubeconfig",
}, {
	name: "a cluster does not answer", plant: module(""), act: func(w *world) { w.cluster("c1", "https://127.0.0.1:1") },
	ask: "module/shop", root: "secret/c1-kubeconfig", says: "cluster c1 cannot be reached",
	next: "kubectl --kubeconfig <(kubectl get secret/c1-kubeconfig -n NS -o go-template='{{.data.value | base64decode}}') cluster-info",
}, {
	name: "a Kustomization is suspended", plant: module(""),
	act: func(w *world) {
		w.cluster("c1", "")
		w.fetched(metav1.ConditionTrue, "")
		k := &kustomizev1.Kustomization{}
		w.eventually(func(ctx context.Context) error {
			if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "c1-shop"}, k); err != nil {
				return err
			}
			k.Spec.Suspend = true
			return w.client.Update(ctx, k)
		})
	},
	ask: "ks/c1-shop", root: "kustomization/c1-shop", says: "spec.suspend is set", next: `kubectl patch kustomization/c1-shop -n NS --type=merge -p '{"spec":{"suspend":false}}'`,
}}
