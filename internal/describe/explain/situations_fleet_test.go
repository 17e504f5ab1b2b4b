package explain_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
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

// pinned is cluster c1, pinned by a user.
const pinned = `apiVersion: fleet.squaremo.dev/v1alpha1
kind: ProxyAssemblage
metadata: {name: c1}
spec:
  kubeconfigRef: {name: c1-kubeconfig}
  assemblage: {syncs: [{name: shop, hold: {by: carol, reason: its disk is full}}]}
`

// ofClusterAPI is a cluster that Cluster API has not brought up yet.
const ofClusterAPI = "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: c2}\nspec: {paused: false}\n"

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
// on cluster c1 exists.
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
func (w *world) applied(kustomization, reason, message string, inventory ...string) {
	w.t.Helper()
	k := &kustomizev1.Kustomization{}
	w.changeStatus(k, kustomization, func() {
		k.Status.ObservedGeneration = k.Generation
		k.Status.Conditions = []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: k.Generation, LastTransitionTime: metav1.Now(),
		}}
		k.Status.Inventory = nil
		for _, id := range inventory {
			if k.Status.Inventory == nil {
				k.Status.Inventory = &kustomizev1.ResourceInventory{}
			}
			k.Status.Inventory.Entries = append(k.Status.Inventory.Entries, kustomizev1.ResourceRef{ID: w.text(id), Version: "v1"})
		}
	})
}

// deployed plays all of Flux: a source has been fetched, and been applied to a cluster.
func (w *world) deployed(kustomization string) {
	w.t.Helper()
	const revision = "v1@sha1:1"
	w.eventually(func(ctx context.Context) error {
		k := &kustomizev1.Kustomization{}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: kustomization}, k); err != nil {
			return err
		}
		s := &sourcev1.GitRepository{}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: k.Spec.SourceRef.Name}, s); err != nil {
			return err
		}
		s.Status.ObservedGeneration = s.Generation
		s.Status.Artifact = &fluxmeta.Artifact{Path: "p", URL: "http://p", Revision: revision, Digest: "sha256:" + strings.Repeat("0", 64), LastUpdateTime: metav1.Now()}
		if err := w.client.Status().Update(ctx, s); err != nil {
			return err
		}
		k.Status.ObservedGeneration, k.Status.LastAppliedRevision = k.Generation, revision
		k.Status.Conditions = []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "ReconciliationSucceeded", Message: "Applied revision: v1", ObservedGeneration: k.Generation, LastTransitionTime: metav1.Now(),
		}}
		return w.client.Status().Update(ctx, k)
	})
}

// assigned waits until a cluster is assigned the module.
func (w *world) assigned(cluster string) {
	w.t.Helper()
	w.eventually(func(ctx context.Context) error {
		a := &fleetv1.ProxyAssemblage{}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: cluster}, a); err != nil {
			return err
		}
		if len(a.Spec.Assemblage.Syncs) == 0 {
			return errors.New("it is assigned nothing")
		}
		return nil
	})
}

// reports waits until a cluster reports the module so.
func (w *world) reports(cluster string, state fleetv1.State) {
	w.t.Helper()
	w.eventually(func(ctx context.Context) error {
		a := &fleetv1.ProxyAssemblage{}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: cluster}, a); err != nil {
			return err
		}
		if len(a.Status.Syncs) == 0 || a.Status.Syncs[0].State != state {
			return fmt.Errorf("it reports %v", a.Status.Syncs)
		}
		return nil
	})
}

// everywhere waits until the module is.
func (w *world) everywhere() {
	w.t.Helper()
	w.eventually(func(ctx context.Context) error {
		m := &fleetv1.Module{}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "shop"}, m); err != nil {
			return err
		}
		if m.Status.CurrentRevision == "" {
			return errors.New("it is " + m.Status.Phase)
		}
		return nil
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
	times: "since", ask: "module/shop", through: "Module Stage RolloutGate", root: "rolloutgate/shop-*", says: "gate approve of stage canary has not been decided",
	next: "spillway fleet approve module/shop -n NS --stage canary --gate approve",
}, {
	name: "a gate is open that one may not see", plant: module(`rollout: {stages: [{name: canary, gates: [{name: approve, when: Before}]}]}`), act: onCluster("c1"),
	sees: []string{"modules.fleet.squaremo.dev"}, ask: "module/shop", by: "stage canary: 0/1 updated", root: "module/shop", says: "rolloutgates cannot be read",
	next: "kubectl get rolloutgates.spillway.dev -n NS",
}, {
	name: "two gates of a stage are open", plant: module(`rollout: {stages: [{name: canary, gates: [{name: load, when: Before}, {name: sign, when: Before}]}]}`), act: onCluster("c1"),
	ask: "module/shop", through: "Module Stage RolloutGate", root: "rolloutgate/shop-*", says: "of stage canary has not been decided",
	next: "spillway fleet approve module/shop -n NS --stage canary --gate *",
}, {
	name: "a gate was refused", plant: module(`rollout: {stages: [{name: canary, gates: [{name: approve, when: Before}]}]}`),
	act: func(w *world) { w.cluster("c1", ""); w.decide(metav1.ConditionFalse, "too many errors") },
	ask: "module/shop", root: "rolloutgate/shop-*", says: "was refused", next: "spillway fleet approve module/shop -n NS --stage canary --gate approve",
}, {
	name: "a module is suspended", plant: module("suspend: true"), act: onCluster("c1"),
	ask: "module/shop", root: "module/shop", says: "spec.suspend is set", next: "spillway resume module/shop -n NS",
}, {
	name: "no window of a module is open", plant: module(`rollout: {windows: [{schedule: "0 0 29 2 *", durationSeconds: 1}]}`), act: onCluster("c1"),
	times: "until", ask: "module/shop", root: "module/shop", says: "no window is open until", next: "",
}, {
	name: "more clusters lose a module than may", plant: module(`rollout: {maxRemoved: 0}`), act: func(w *world) {
		w.cluster("c1", "")
		w.assigned("c1")
		w.apply(strings.ReplaceAll(module(`rollout: {maxRemoved: 0}`), "selector: {}", "selector: {matchLabels: {tier: gold}}"))
	},
	ask: "module/shop@c1", through: "Cluster Module", root: "module/shop", says: "c1 is waiting: 1 of 1 are to be removed, more than 0 (maxRemoved)",
	next: "spillway fleet approve module/shop -n NS --remove=1",
}, {
	name: "a cluster is pinned", plant: module("suspend: true"),
	act: func(w *world) {
		w.cluster("c1", "")
		w.apply(pinned)
	},
	owner: "carol", ask: "module/shop@c1", root: "cluster/c1", says: "paused by carol", next: "spillway fleet unpin module/shop -n NS --cluster c1",
}, {
	name: "a cluster does not exist", plant: module("suspend: true"),
	ask: "module/shop@c9", root: "cluster/c9", says: "cluster c9 not found", next: "kubectl get secrets -n NS -l spillway.dev/cluster=true",
}, {
	name: "a cluster is not selected", plant: strings.ReplaceAll(module(""), "selector: {}", "selector: {matchLabels: {tier: gold}}"), act: onCluster("c1"),
	ask: "module/shop@c1", root: "cluster/c1", says: "is not selected by spec.selector", next: "kubectl get secret/c1-kubeconfig -n NS --show-labels",
}, {
	name: "a cluster of Cluster API is not selected", plant: strings.ReplaceAll(module(""), "selector: {}", "selector: {matchLabels: {tier: gold}}") + "---\n" + ofClusterAPI,
	ask: "module/shop@c2", root: "cluster/c2", says: "is not selected by spec.selector", next: "kubectl get cluster.cluster.x-k8s.io/c2 -n NS --show-labels",
}, {
	name: "a cluster of Cluster API is not up", plant: module("") + "---\n" + ofClusterAPI,
	ask: "module/shop@c2", root: "cluster/c2", says: "its control plane must be initialized", next: "kubectl describe cluster.cluster.x-k8s.io/c2 -n NS",
}, {
	name: "a module selects no cluster", plant: strings.ReplaceAll(module(""), "selector: {}", "selector: {matchLabels: {tier: gold}}"),
	ask: "module/shop", root: "module/shop", says: "spec.selector matches none of the 0 clusters",
}, {
	name: "a cluster waits with its stage for a gate", plant: module(`rollout: {stages: [{name: canary, gates: [{name: approve, when: Before}]}]}`),
	act: onCluster("c1"), ask: "module/shop@c1", through: "Cluster Module Stage RolloutGate", root: "rolloutgate/shop-*", says: "has not been decided",
	next: "spillway fleet approve module/shop -n NS --stage canary --gate approve",
}, {
	name: "a cluster lacks a Secret, deep down", plant: module("") + "---\n" + deployment("web", still, needsDB),
	act: func(w *world) {
		w.cluster("c1", "")
		w.fetched(metav1.ConditionTrue, "")
		waiting("web", "CreateContainerConfigError", "")(w)
		w.applied("c1-shop", "HealthCheckFailed", "timeout waiting for: [Deployment/NS/web status: 'InProgress']", "NS_web_apps_Deployment")
	},
	times: "since deadline", ask: "module/shop", through: "Module Stage Cluster ProxyAssemblage Kustomization Deployment Pod Secret", root: "secret/db@c1", says: "on cluster c1, Secret db not found",
	next: "kubectl create secret generic db -n NS --from-literal=password=VALUE --kubeconfig c1.kubeconfig",
}, {
	name: "a stage waits for a cluster, that for a group, that for a Pod, and that for a Secret", plant: all(module(""), zone("a"), zone("b")),
	act: func(w *world) {
		w.cluster("c1", "")
		w.groupIs("Complete")
		w.fetched(metav1.ConditionTrue, "")
		w.apply(zone("a", newer, still, needsDB))
		w.pods("a", unconfigured)
		w.applied("c1-shop", "HealthCheckFailed", "timeout waiting for: [StatefulSet/NS/a status: 'InProgress']", "NS_a_apps_StatefulSet", "NS_b_apps_StatefulSet")
	},
	ask: "module/shop", through: "Module Stage Cluster ProxyAssemblage Kustomization StatefulSet RolloutGroup Zone Pod Secret", root: "secret/db@c1", says: "on cluster c1, Secret db not found",
	times: "since deadline", next: "kubectl create secret generic db -n NS --from-literal=password=VALUE --kubeconfig c1.kubeconfig",
}, {
	name: "the budget of a module is used up", plant: module("rollout: {orderBy: {labelKey: cluster}}"),
	act: func(w *world) {
		w.cluster("1", "")
		w.cluster("2", "")
		w.fetched(metav1.ConditionFalse, "authentication required")
	},
	ask: "module/shop@2", by: "1 of 1 allowed", through: "Cluster Module Stage Cluster ProxyAssemblage Kustomization GitRepository", root: "gitrepository/shop-*@1", says: "cannot be fetched: authentication required",
	times: "since", next: "kubectl describe gitrepository/NAME -n NS --kubeconfig 1.kubeconfig",
}, {
	name: "what the hub applies to a cluster is unhealthy", plant: strings.ReplaceAll(module(""), "kind: Module", "kind: BootstrapModule") + "---\n" + deployment("web", crash),
	act: func(w *world) {
		w.cluster("c1", "")
		w.fetched(metav1.ConditionTrue, "")
		w.applied("shop-c1", "HealthCheckFailed", "timeout", "NS_web_apps_Deployment")
	},
	ask: "bootstrapmodule/shop", through: "BootstrapModule Stage Cluster RemoteAssemblage Kustomization Deployment Pod", root: "pod/web-*@c1", says: "exited with code 1",
	next: "kubectl logs pod/NAME -n NS -c app --previous --kubeconfig c1.kubeconfig",
}, {
	name: "an object of an unknown kind", plant: `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: shop}
spec: {interval: 1h, url: "https://example.com/shop"}
`, act: func(w *world) { w.fetched(metav1.ConditionFalse, "authentication required") },
	ask: "gitrepositories/shop", root: "gitrepository/shop", says: "is not ready: authentication required", next: "kubectl describe gitrepository/shop -n NS",
}, {
	name: "what is to be applied cannot be fetched", plant: module(""),
	act: func(w *world) { w.cluster("c1", ""); w.fetched(metav1.ConditionFalse, "authentication required") },
	ask: "module/shop", root: "gitrepository/shop-*@c1", says: "cannot be fetched: authentication required", next: "kubectl describe gitrepository/NAME -n NS --kubeconfig c1.kubeconfig",
}, {
	name: "a cluster does not answer", plant: module(""), act: func(w *world) { w.cluster("c1", "https://127.0.0.1:1") },
	ask: "module/shop", root: "secret/c1-kubeconfig", says: "cluster c1 is unreachable",
	next: "kubectl cluster-info --kubeconfig c1.kubeconfig",
}, {
	name: "a new cluster does not come up beside one that has failed and is pinned", plant: module(""),
	act: func(w *world) {
		w.cluster("c1", "")
		w.deployed("c1-shop")
		w.everywhere()
		w.applied("c1-shop", "HealthCheckFailed", "timeout")
		w.reports("c1", fleetv1.StateFailed)
		w.apply(pinned)
		w.cluster("c9", "")
	},
	ask: "module/shop", through: "Module Cluster ProxyAssemblage Kustomization", root: "kustomization/c9-shop@c9", says: "is kustomize-controller of Flux running?", next: "*",
}, {
	name: "a finalizer keeps a module that is deleted", plant: strings.Replace(module(""), "{name: shop}", "{name: shop, finalizers: [acme.io/keep]}", 1),
	act: func(w *world) {
		w.delete(&fleetv1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shop"}})
	},
	ask: "module/shop", root: "module/shop", says: "cannot be deleted: finalizer acme.io/keep is not removed yet", next: "kubectl get module/shop -n NS -o jsonpath='{.metadata.finalizers}'",
}, {
	name: "Flux has not looked at a Kustomization as it is now", plant: module(""),
	act: func(w *world) {
		w.cluster("c1", "")
		w.deployed("c1-shop")
		k := &kustomizev1.Kustomization{}
		w.changeStatus(k, "c1-shop", func() {
			k.Status.Conditions[0].ObservedGeneration = k.Generation - 1
		})
	},
	ask: "ks/c1-shop", root: "kustomization/c1-shop", says: "not reconciled at this generation; is kustomize-controller of Flux running?", next: "kubectl get pods -A -l app=kustomize-controller",
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
