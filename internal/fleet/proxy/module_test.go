package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// canaryFirst is a Module that goes to a canary, waits for an approval, and then goes to so many clusters of the
// rest at a time; and back again where it fails.
func canaryFirst(width int, sync string) string {
	return fmt.Sprintf(`
selector: {matchLabels: {fleet: "yes"}}
strategy: Incremental
rollout:
  onFailure: Rollback
  stages:
  - {name: canary, selector: {matchLabels: {canary: "true"}}, gates: [{name: approve, when: After}]}
  - {name: rest, maxUnreadyClusters: %d}
template: {spec: {sync: %s}}
`, width, sync)
}

func (w *world) module(tag string) {
	w.Helper()
	w.moduleAs(canaryFirst(2, fmt.Sprintf(`{source: {git: {url: %q, version: {tag: %s}}}, timeout: 3s}`, w.url, tag)))
}

func (w *world) moduleAs(spec string) {
	w.Helper()
	m := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shop"}}
	w.write(m, func() {
		m.Spec = v1alpha1.ModuleSpec{}
		if err := yaml.UnmarshalStrict([]byte(spec), &m.Spec); err != nil {
			w.Fatal(err)
		}
	})
}

// label makes a joined cluster one of the fleet's.
func (w *world) label(i int, labels map[string]string) {
	w.Helper()
	secret := testenv.KubeconfigSecret(w.T, w.namespace, fmt.Sprintf("c%d", i), testenv.Workload(i))
	labels["spillway.dev/cluster"] = "true"
	if labels["fleet"] == "" {
		labels["fleet"] = "yes"
	}
	secret.Labels = labels
	if err := w.hub.Update(w.Context(), secret); err != nil {
		w.Fatal(err)
	}
}

// runs waits until each cluster runs such a version, "" being none.
func (w *world) runs(versions ...string) {
	w.Helper()
	for i, version := range versions {
		if version == "" {
			w.data(i, nil)
			continue
		}
		w.data(i, map[string]string{"version": version, "where": "${where}"})
	}
}

// approve passes the gate of the revision that is being rolled out.
func (w *world) approve() {
	w.Helper()
	testenv.Eventually(w.T, func(ctx context.Context) error {
		m := &v1alpha1.Module{}
		if err := w.hub.Get(ctx, w.key("shop"), m); err != nil {
			return err
		}
		gates := &spillway.RolloutGateList{}
		if err := w.hub.List(ctx, gates, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for i := range gates.Items {
			g := &gates.Items[i]
			if g.Spec.Revision == m.Status.TargetRevision {
				apimeta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: spillway.GatePassed, Status: "True", Reason: "Approved", Message: "it looks well"})
				return w.hub.Status().Update(ctx, g)
			}
		}
		return errors.New("there is no gate for " + m.Status.TargetRevision)
	})
}

// approveRemoval waits until the removal of clusters asks for an approval, and gives it.
func (w *world) approveRemoval() {
	w.Helper()
	approval := ""
	testenv.Eventually(w.T, func(ctx context.Context) error {
		m := &v1alpha1.Module{}
		if err := w.hub.Get(ctx, w.key("shop"), m); err != nil {
			return err
		}
		if m.Status.Removal == nil || m.Status.Removal.Approval == "" {
			return fmt.Errorf("no approval is asked for: %+v", m.Status.Removal)
		}
		approval = m.Status.Removal.Approval
		return nil
	})
	w.annotate(w.hub, &v1alpha1.Module{}, "shop", "spillway.dev/approve-removal", approval)
}

// phase waits until the module is in a phase.
func (w *world) phase(want string) {
	w.Helper()
	testenv.Eventually(w.T, func(ctx context.Context) error {
		m := &v1alpha1.Module{}
		if err := w.hub.Get(ctx, w.key("shop"), m); err != nil {
			return err
		}
		if m.Status.Phase != want || m.Status.ObservedGeneration != m.Generation {
			return fmt.Errorf("%s: %s", m.Status.Phase, m.Status.WaitingFor)
		}
		return nil
	})
}

// A Module from its first revision to its end, with all real parts: the canary cluster
// first, an approval, the rest; and a bad revision, which stops at the canary and rolls
// back automatically.
func TestAModuleRollsOverTheClusters(t *testing.T) {
	w := newWorld(t)
	w.manage()
	for _, i := range []int{0, 1} {
		w.join(i)
	}
	w.label(0, map[string]string{"canary": "true"})
	w.label(1, map[string]string{})
	w.publish("v1")
	w.publish("v2")
	w.publishText("bad", "apiVersion: v1\nkind: NoSuchKind\nmetadata: {name: app, namespace: "+w.namespace+"}\n")
	w.module("v1")
	w.runs("v1")
	w.approve()
	w.runs("v1", "v1")
	w.phase("Complete")
	w.module("v2")
	w.runs("v2")
	w.runs("v2", "v1") // the rest waits for the approval
	w.approve()
	w.runs("v2", "v2")
	w.phase("Complete")
	w.module("bad")
	testenv.Eventually(t, func(ctx context.Context) error {
		m := &v1alpha1.Module{}
		if err := w.hub.Get(ctx, w.key("shop"), m); err != nil {
			return err
		}
		if m.Status.RolledBack == "" {
			return fmt.Errorf("%s: %s", m.Status.Phase, m.Status.WaitingFor)
		}
		return nil
	})
	w.runs("v2", "v2")
	for _, name := range []string{"c0", "c1"} {
		testenv.Eventually(t, func(context.Context) error {
			for _, s := range w.status(proxied(), name).Syncs {
				if s.State == v1alpha1.StateSucceeded {
					return nil
				}
			}
			return errors.New(name + " is not healthy again")
		})
	}
	w.remove(w.hub, &v1alpha1.Module{}, "shop")
	w.gone(w.hub, &v1alpha1.Module{}, "shop")
	w.runs("", "")
	for i, name := range []string{"c0", "c1"} { // both are orphaned
		w.gone(w.hub, proxied(), name)
		w.gone(w.on(i), &v1alpha1.Assemblage{}, name)
	}
}

// A Cluster of Cluster API that is deleted in the ordinary way takes its assemblages with
// it, although neither its Secret nor its API server is there any more; and one of the
// same name that is recreated does not have to wait for anybody.
func TestWithItsClusterAnAssemblageGoes(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.publish("v1")
	w.create(w.on(0), namespaceOf(w))
	owner := w.clusterAPI("c0")
	w.join(0)
	w.assign("c0", w.sync("shop", "v1", ""))
	w.bootstrap("c0", w.sync("flux", "v1", ""))
	for _, obj := range []client.Object{proxied(), remote()} {
		obj.SetNamespace(w.namespace)
		obj.SetName("c0")
		w.write(obj, func() { obj.SetOwnerReferences([]metav1.OwnerReference{owner}) })
		w.becomes(obj, "c0", map[bool]string{true: "shop-v1", false: "flux-v1"}[isProxied(obj)], v1alpha1.StateSucceeded, "")
	}
	w.remove(w.hub, &corev1.Secret{}, "c0-kubeconfig")
	w.remove(w.hub, proxied(), "c0")
	w.remove(w.hub, remote(), "c0")
	w.concluded(proxied(), "c0", "cannot be removed: Secret c0-kubeconfig with a kubeconfig not found")
	w.concluded(remote(), "c0", "waiting for Flux to remove")
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(cluster.GVK)
	w.remove(w.hub, u, "c0")
	w.gone(w.hub, proxied(), "c0")
	w.gone(w.hub, remote(), "c0")
	w.has(w.hub, 0, 0)
}

// A cluster that is given up is left as it is, also while it answers; and the next
// ProxyAssemblage takes over what exists.
func TestAClusterThatAnswersIsGivenUpToo(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.join(0)
	w.publish("v1")
	w.assign("c0", w.sync("shop", "v1", inCluster))
	w.becomes(proxied(), "c0", "shop-v1", v1alpha1.StateSucceeded, "")
	before := w.version(0)
	w.annotate(w.hub, proxied(), "c0", "spillway.dev/abandon-cluster", "true")
	w.remove(w.hub, proxied(), "c0")
	w.gone(w.hub, proxied(), "c0")
	w.assign("c0", w.sync("shop", "v1", inCluster))
	w.becomes(proxied(), "c0", "shop-v1", v1alpha1.StateSucceeded, "")
	w.data(0, map[string]string{"version": "v1", "where": "in c0"})
	if after := w.version(0); after != before {
		t.Errorf("what exists was changed: generation %d, after it was %d", after, before)
	}
}

func isProxied(obj client.Object) bool { _, ok := obj.(*v1alpha1.ProxyAssemblage); return ok }

// clusterAPI makes a Cluster of Cluster API, and returns how it owns something.
func (w *world) clusterAPI(name string) metav1.OwnerReference {
	w.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"controlPlaneEndpoint": map[string]any{"host": "there", "port": int64(1)}}}}
	u.SetGroupVersionKind(cluster.GVK)
	u.SetNamespace(w.namespace)
	u.SetName(name)
	w.create(w.hub, u)
	return metav1.OwnerReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: name, UID: u.GetUID()}
}

// Deletion policy Orphan, while the cluster does not carry anything out: what runs there
// stays, since the sync is not removed before that has come to Flux.
func TestWhatIsToStayStays(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.create(w.hub, testenv.KubeconfigSecret(t, w.namespace, "c0", testenv.Workload(0)))
	stop := w.serve(0)
	w.label(0, map[string]string{"canary": "true"})
	w.publish("v1")
	w.module("v1")
	w.runs("v1")
	w.approve()
	w.phase("Complete")
	stop()
	m := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shop"}}
	w.write(m, func() { m.Spec.DeletionPolicy = v1alpha1.Orphan })
	w.remove(w.hub, &v1alpha1.Module{}, "shop")
	testenv.Eventually(t, func(ctx context.Context) error {
		p, a := proxied(), &v1alpha1.Assemblage{}
		if err := errors.Join(w.hub.Get(ctx, w.key("c0"), p), w.on(0).Get(ctx, w.key("c0"), a)); err != nil {
			return err
		}
		if len(a.Spec.Syncs) != 1 || a.Spec.Syncs[0].DeletionPolicy != v1alpha1.Orphan || p.Status.ObservedGeneration != p.Generation {
			return fmt.Errorf("it was sent %+v", a.Spec.Syncs)
		}
		return nil
	})
	w.serve(0)
	w.gone(w.hub, &v1alpha1.Module{}, "shop")
	w.has(w.on(0), 0, 0)
	w.runs("v1")
}

// A tag that is moved after the canary has run it, with all real parts: no cluster gets what
// it is now, not even the canary, whose Flux would follow it; nor from a hub that was away.
func TestATagThatMovesMovesNoCluster(t *testing.T) {
	w := newWorld(t)
	w.manage()
	for _, i := range []int{0, 1} {
		w.join(i)
	}
	w.label(0, map[string]string{"canary": "true"})
	w.label(1, map[string]string{})
	commit := strings.TrimPrefix(w.publish("v1"), "v1@sha1:")
	w.module("v1")
	w.runs("v1")
	w.named("c0", commit)
	w.publishText("v1", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: %s}\ndata: {version: moved}\n", w.namespace))
	w.stop()
	w.manage()
	w.approve()
	w.runs("v1", "v1")
	w.named("c1", commit)
	w.phase("Complete")
	w.has(w.on(0), 1, 1)
	w.has(w.on(1), 1, 1)
}

// named waits until a cluster is assigned a commit, and has applied that.
func (w *world) named(cluster, commit string) {
	w.Helper()
	testenv.Eventually(w.T, func(ctx context.Context) error {
		p := proxied()
		if err := w.hub.Get(ctx, w.key(cluster), p); err != nil {
			return err
		}
		s := p.Spec.Assemblage.Syncs[0]
		if len(p.Status.Syncs) == 0 || s.Source.Git.Version.Revision != commit || p.Status.Syncs[0].Resolved != "sha1:"+commit {
			return fmt.Errorf("%s is assigned %+v, and has applied %+v", cluster, s.Source.Git.Version, p.Status.Syncs)
		}
		return nil
	})
}

// From a cluster that is not selected any more the assemblage goes as well, here and
// there, once it is orphaned, and comes back with the next. Anything that another client
// wrote into it keeps it, even its creation alone.
func TestAnOrphanedProxyAssemblageIsDeleted(t *testing.T) {
	w := newWorld(t)
	w.manage()
	for _, i := range []int{0, 1} {
		w.join(i)
		w.label(i, map[string]string{"canary": "true"})
	}
	w.publish("v1")
	w.assign("c1", w.sync("other", "v1", "package: {kustomize: {path: .}}\nprune: false"))
	w.module("v1")
	w.approve()
	w.runs("v1", "v1")
	w.phase("Complete")
	for _, i := range []int{0, 1} {
		w.label(i, map[string]string{"fleet": "no"})
	}
	w.approveRemoval()
	w.gone(w.hub, proxied(), "c0")
	w.gone(w.on(0), &v1alpha1.Assemblage{}, "c0")
	w.data(0, nil)
	w.assign("c1")
	w.has(w.on(1), 0, 0)
	w.label(0, map[string]string{"canary": "true"})
	w.runs("v1")
	w.phase("Complete")
	if err := w.hub.Get(t.Context(), w.key("c1"), proxied()); err != nil {
		t.Errorf("what another client has created: %v", err)
	}
}

// assignAs has a field owner have these syncs in a RemoteAssemblage or a ProxyAssemblage.
func (w *world) assignAs(owner, kind, cluster string, syncs ...string) {
	w.Helper()
	list := "[" + strings.Join(syncs, ", ") + "]"
	spec := "syncs: " + list
	if kind == "ProxyAssemblage" {
		spec = "assemblage: {syncs: " + list + "}"
	}
	u := &unstructured.Unstructured{}
	manifest := fmt.Sprintf("{apiVersion: fleet.squaremo.dev/v1alpha1, kind: %s, metadata: {name: %s, namespace: %s}, spec: {kubeconfigRef: {name: %s-kubeconfig}, %s}}",
		kind, cluster, w.namespace, cluster, spec)
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		w.Fatal(manifest, err)
	}
	if err := w.hub.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(owner), client.ForceOwnership); err != nil {
		w.Fatal(err)
	}
}

// A RemoteAssemblage likewise, once Flux has taken away what it had brought about; not
// while a user pins the cluster.
func TestAnOrphanedRemoteAssemblageIsDeleted(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.join(0)
	w.publish("v1")
	w.create(w.on(0), namespaceOf(w))
	sync := fmt.Sprintf("{name: flux, revision: r, source: {git: {url: %q, version: {tag: v1}}}}", w.url)
	w.assignAs("spillway-module/flux", "RemoteAssemblage", "c0", sync)
	w.assignAs("alice", "RemoteAssemblage", "c0", "{name: flux, hold: {reason: slow}}")
	w.becomes(remote(), "c0", "r", v1alpha1.StateSucceeded, "")
	w.assignAs("spillway-module/flux", "RemoteAssemblage", "c0")
	w.data(0, nil)
	w.has(w.hub, 0, 0)
	if got := w.status(remote(), "c0"); len(got.Syncs) != 1 || got.Syncs[0].Reason != "NotAssigned" {
		t.Errorf("it is pinned: %+v", got)
	}
	release := &unstructured.Unstructured{}
	release.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RemoteAssemblage"))
	release.SetNamespace(w.namespace)
	release.SetName("c0")
	if err := w.hub.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(release), client.FieldOwner("alice")); err != nil {
		t.Fatal(err)
	}
	w.gone(w.hub, remote(), "c0")
}
