package migrate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// The versions of the kinds that fleeet and Flux have.
const fleetV1, gitV1, kustomizeV1 = "fleet.squaremo.dev/v1alpha1", "source.toolkit.fluxcd.io/v1", "kustomize.toolkit.fluxcd.io/v1"

// fleeetHub assigns all modules to all clusters as fleeet does on a hub, which is the only cluster here, and copies what became of them.
func (w *world) fleeetHub(ctx context.Context) error {
	modules, err := w.all(ctx, fleetV1, "Module")
	if err != nil {
		return err
	}
	syncs := []any{}
	for i := range modules {
		if sync, is, _ := unstructured.NestedMap(modules[i].Object, "spec", "sync"); is {
			sync["name"] = modules[i].GetName()
			syncs = append(syncs, sync)
		}
	}
	clusters, err := w.all(ctx, cluster.GVK.GroupVersion().String(), cluster.GVK.Kind)
	for i := range clusters {
		c, of := &clusters[i], map[string]any{"syncs": syncs}
		proxy, err := w.owned(ctx, c, fleetV1, "ProxyAssemblage", c.GetName(), map[string]any{"kubeconfigRef": map[string]any{"name": cluster.SecretName(c.GetName())}, "assemblage": of})
		if err != nil {
			return err
		}
		there, err := w.owned(ctx, nil, fleetV1, "Assemblage", c.GetName(), of)
		if err == nil {
			states, _, _ := unstructured.NestedSlice(there.Object, "status", "syncs")
			err = w.reports(ctx, proxy, states)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// fleeetAgent makes a GitRepository and a Kustomization of each sync as fleeet does on a cluster: numbered, and nothing is pruned.
func (w *world) fleeetAgent(ctx context.Context) error {
	assemblages, err := w.all(ctx, fleetV1, "Assemblage")
	for i := range assemblages {
		a, states := &assemblages[i], []any{}
		syncs, _, _ := unstructured.NestedSlice(a.Object, "spec", "syncs")
		for n := range syncs {
			sync, _ := syncs[n].(map[string]any)
			name := fmt.Sprintf("%s-%d", a.GetName(), n)
			url, _, _ := unstructured.NestedString(sync, "source", "git", "url")
			tag, _, _ := unstructured.NestedString(sync, "source", "git", "version", "tag")
			_, err := w.owned(ctx, a, gitV1, "GitRepository", name, map[string]any{"url": url, "ref": map[string]any{"tag": tag}, "interval": "1m0s", "timeout": "60s"})
			if err != nil {
				return err
			}
			k, err := w.owned(ctx, a, kustomizeV1, "Kustomization", name, map[string]any{"sourceRef": map[string]any{"kind": "GitRepository", "name": name}, "path": ".", "prune": false, "force": false, "interval": "1m0s"})
			if err != nil {
				return err
			}
			state := "updating"
			conditions, _, _ := unstructured.NestedSlice(k.Object, "status", "conditions")
			for _, c := range conditions {
				if is, _ := c.(map[string]any); is["type"] == "Ready" && is["status"] == "True" {
					state = "succeeded"
				}
			}
			states = append(states, map[string]any{"sync": sync, "state": state})
		}
		if err := w.reports(ctx, a, states); err != nil {
			return err
		}
	}
	return err
}

// all are the objects of a kind.
func (w *world) all(ctx context.Context, version, kind string) ([]unstructured.Unstructured, error) {
	return w.allIn(ctx, w.namespace, version, kind)
}

// allIn are those of a namespace.
func (w *world) allIn(ctx context.Context, namespace, version, kind string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(version)
	list.SetKind(kind)
	if err := w.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	return list.Items, nil
}

// owned creates an object, or writes all of its spec.
func (w *world) owned(ctx context.Context, owner *unstructured.Unstructured, version, kind, name string, spec map[string]any) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetNamespace(w.namespace)
	u.SetName(name)
	_, err := controllerutil.CreateOrUpdate(ctx, w.client, u, func() error {
		u.Object["spec"] = spec
		if owner != nil {
			u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
		}
		return nil
	})
	if apierrors.IsConflict(err) {
		err = nil // it looks again
	}
	return u, err
}

// reports writes the status of an assemblage, if the kind is one that accepts what fleeet says there.
func (w *world) reports(ctx context.Context, u *unstructured.Unstructured, states []any) error {
	was, _, _ := unstructured.NestedSlice(u.Object, "status", "syncs")
	if equality.Semantic.DeepEqual(was, states) {
		return nil
	}
	before := u.DeepCopy()
	u.Object["status"] = map[string]any{"syncs": states}
	err := w.client.Status().Patch(ctx, u, client.MergeFrom(before))
	if apierrors.IsInvalid(err) {
		return nil // it says so, and tries again
	}
	return err
}

// fleeetKinds are the kinds as fleeet has them, as far as it matters here: they have no fields that Spillway requires.
func (w *world) fleeetKinds() {
	for _, kind := range []string{"Module", "Assemblage", "ProxyAssemblage"} {
		w.apply(fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[2]s.fleet.squaremo.dev}, spec: {group: fleet.squaremo.dev, scope: Namespaced, names: {kind: %[1]s, plural: %[2]s, singular: %[3]s, listKind: %[1]sList},
versions: [{name: v1alpha1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`, kind, strings.ToLower(kind)+"s", strings.ToLower(kind)))
		testenv.Eventually(w.t, func(ctx context.Context) error { _, err := w.all(ctx, fleetV1, kind); return err })
	}
}

// fleet is a hub that is its own cluster, with modules.
func (w *world) fleet(modules ...string) {
	w.t.Helper()
	secret := testenv.KubeconfigSecret(w.t, w.namespace, "self", testenv.Shared())
	if err := w.client.Create(w.t.Context(), secret); err != nil {
		w.t.Fatal(err)
	}
	w.apply(fmt.Sprintf(`{apiVersion: %s, kind: Cluster, metadata: {name: self, labels: {env: prod}}, spec: {controlPlaneEndpoint: {host: x, port: 1}}}`, cluster.GVK.GroupVersion()))
	c := &unstructured.Unstructured{}
	c.SetGroupVersionKind(cluster.GVK)
	c.SetNamespace(w.namespace)
	c.SetName("self")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"initialization":{"controlPlaneInitialized":true}}}`))
	if err := w.client.Status().Patch(w.t.Context(), c, patch); err != nil {
		w.t.Fatal(err)
	}
	for _, name := range modules {
		for n := range versions {
			testenv.Publish(w.t, w.repository(name), fmt.Sprintf("v%d", n), map[string]string{"app.yaml": fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s, namespace: %[2]s}, spec: {replicas: 1, selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}, annotations: {version: v%[3]d}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: x}]}}}}`, name, w.namespace, n)})
		}
	}
	w.apply(formerly("fleeet-control", "squaremo/fleeet-control:v0.1.0") + "\n---\n" + formerly("fleeet-assemblage", "squaremo/fleeet-assemblage:v0.1.0"))
	w.standIn("fleeet-control", always(w.fleeetHub))
	w.standIn("fleeet-assemblage", always(w.fleeetAgent))
}

// loopback is where the cluster of the hub is, which is the hub itself.
const loopback = "--allow-cluster-addresses=127.0.0.0/8"

// versions is how many each module has.
const versions = 60

func (w *world) repository(module string) string {
	return "https://git.test/" + w.namespace + "/" + module
}

func (w *world) module(name string, version int) string {
	return fmt.Sprintf(`{apiVersion: %s, kind: Module, metadata: {name: %s}, spec: {selector: {matchLabels: {env: prod}}, sync: {source: {git: {url: %q, version: {tag: v%d}}}, package: {kustomize: {path: .}}}}}`, fleetV1, name, w.repository(name), version)
}

// synced waits until Flux has these Kustomizations alone, and what runs of a module is of a version.
func (w *world) synced(module, version string, want ...string) {
	w.t.Helper()
	testenv.Eventually(w.t, func(ctx context.Context) error {
		var got []string
		kustomizations, err := w.all(ctx, kustomizeV1, "Kustomization")
		for i := range kustomizations {
			got = append(got, kustomizations[i].GetName())
		}
		if slices.Sort(got); err != nil || !slices.Equal(got, want) {
			return fmt.Errorf("Kustomizations %v, want %v: %w", got, want, err)
		}
		return w.hasVersion(ctx, module, version)
	})
}

// hasVersion is an error unless the Pods of an app are ready, and have a version alone.
func (w *world) hasVersion(ctx context.Context, app, version string) error {
	pods := &corev1.PodList{}
	if err := w.client.List(ctx, pods, client.InNamespace(w.namespace), client.MatchingLabels{"app": app}); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	for i := range pods.Items {
		if has := pods.Items[i].Annotations["version"]; has != version {
			return fmt.Errorf("a Pod of %s has version %s, want %s", app, has, version)
		}
	}
	if ready, _ := w.isReady(ctx, w.namespace, client.MatchingLabels{"app": app}); !ready {
		return fmt.Errorf("no Pod of %s is ready", app)
	}
	return nil
}

// TestFromFleeetAndBack: nothing rolls, each revision reaches the cluster once, Flux is left with no two Kustomizations of a module,
// and what fleeet works with can be deleted without the manager.
func TestFromFleeetAndBack(t *testing.T) {
	w := newWorld(t)
	w.fleeetKinds()
	w.fleet("mod-0", "mod-1")
	w.apply(w.module("mod-0", 0) + "\n---\n" + w.module("mod-1", 0))
	want := map[string]int{"mod-0": 1, "mod-1": 1}
	w.synced("mod-0", "v0", "self-0", "self-1")
	w.settled(want)

	w.says(w.spillway(0), "fleeet v0.1.0: deployment/fleeet-control in namespace "+w.namespace, "acts on 1 Assemblage, 2 Module, 1 ProxyAssemblage", "spillway install --rings=assemblage,fleet")
	w.says(w.spillway(0, "do", "--settle=3s", "--webhooks=false", "--", loopback), "deployment/fleeet-assemblage in namespace "+w.namespace+" scaled to 0", "changed over; spillway migrate undo goes back")
	w.synced("mod-0", "v0", "self--mod-0", "self--mod-1")
	w.settled(want)
	w.apply(w.module("mod-0", 1))
	want["mod-0"]++
	w.synced("mod-0", "v1", "self--mod-0", "self--mod-1")
	w.settled(want)

	w.apply(fmt.Sprintf(`{apiVersion: %s, kind: Module, metadata: {name: ours}, spec: {template: {spec: {sync: {source: {git: {url: "https://git.test/x", version: {tag: v1}}}}}}}}`, fleetV1))
	w.says(w.spillway(1, "undo"), "template: module/ours in namespace "+w.namespace+" has spec.template, which fleeet does not read")
	w.says(w.spillway(0, "undo", "--accept=moving,template"), "kustomization/self--mod-0 in namespace "+w.namespace+" deleted; what it has applied stays", "deployment/fleeet-control in namespace "+w.namespace+" scaled to 2")
	w.synced("mod-0", "v1", "self-0", "self-1")
	w.settled(want)
	w.fleeetKinds()
	w.apply(w.module("mod-0", 2))
	want["mod-0"]++
	w.synced("mod-0", "v2", "self-0", "self-1")
	w.settled(want)
	for _, kind := range []string{"Module", "ProxyAssemblage", "Assemblage"} {
		objects, err := w.all(t.Context(), fleetV1, kind)
		for i := range objects {
			if left := objects[i].GetFinalizers(); len(left) > 0 {
				t.Errorf("%s %s has finalizers %v", kind, objects[i].GetName(), left)
			}
		}
		if err != nil || len(objects) == 0 {
			t.Errorf("%d of %s: %v", len(objects), kind, err)
		}
	}
}
