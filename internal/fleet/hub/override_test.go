package hub_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// overridden applies the module with overrides, and with a package.
func (w *world) overridden(kind, tag, spec, pkg, overrides string) error {
	obj := &unstructured.Unstructured{}
	doc := fmt.Sprintf(`{spec: {%s, template: {spec: {sync: {source: {git: {url: "https://x.test/a", version: {tag: %q}}}, package: {%s}}, overrides: [%s]}}}}`, spec, tag, pkg, overrides)
	if err := yaml.Unmarshal([]byte(doc), &obj.Object); err != nil {
		return err
	}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	obj.SetNamespace(w.namespace)
	obj.SetName(app)
	return w.client.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("user"), client.ForceOwnership)
}

// must applies it as [world.overridden] does, with kustomize.
func (w *world) must(tag, spec, overrides string) {
	w.t.Helper()
	if err := w.overridden(model.KindModule, tag, spec, "", overrides); err != nil {
		w.t.Fatal(err)
	}
}

// assigns is what each cluster is assigned, with the overrides that it has: "a:v1+eu b:v1".
func (w *world) assigns(want string) {
	w.t.Helper()
	w.then(func() error {
		list := &v1alpha1.ProxyAssemblageList{}
		if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		var words []string
		for i := range list.Items {
			words = append(words, list.Items[i].Name+":"+assigned(&list.Items[i]))
		}
		slices.Sort(words)
		if got := strings.Join(words, " "); got != want {
			return fmt.Errorf("they are assigned %q, want %q: %s", got, want, w.says())
		}
		return nil
	})
}

// generations are those of the assemblages: one that is not written keeps its own.
func (w *world) generations() map[string]int64 {
	w.t.Helper()
	list := &v1alpha1.ProxyAssemblageList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	all := map[string]int64{}
	for i := range list.Items {
		all[list.Items[i].Name] = list.Items[i].Generation
	}
	return all
}

func (w *world) label(name, region string) {
	w.t.Helper()
	w.patch(&corev1.Secret{}, cluster.SecretName(name), fmt.Sprintf(`{"metadata":{"labels":{"region":%q}}}`, region))
}

const (
	euPatch = `{name: eu, clusters: {matchLabels: {region: eu}}, patches: [{target: {kind: Deployment}, patch: '[{"op": "add", "path": "/x", "value": "a < b"}]'}]}`
	bigOne  = `{name: big, clusters: {matchExpressions: [{key: size, operator: In, values: [big]}]}, controlPlaneBindings: [{name: SIZE, value: "3"}]}`
)

// An override is part of the revision: it rolls out in the budget, and to the clusters alone on which it changes
// something. The others are not written, and show nothing.
func TestAnOverrideReachesOnlyTheClustersThatItChanges(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a region=eu", "b region=us", "c region=eu size=big", "d region=us")
	spec := `selector: {}, strategy: Incremental, rollout: {maxUnreadyClusters: 1, stages: [{name: us, selector: {matchLabels: {region: us}}}, {name: eu}]}`
	w.must("v1", spec, "")
	w.assigns("a:v1 b:v1 c:v1 d:v1")
	w.waits("Complete", "")
	before := w.generations()

	w.must("v1", spec, euPatch+", "+bigOne)
	w.assigns("a:v1+eu b:v1 c:v1+eu+big d:v1")
	w.waits("Complete", "")
	w.player.atMost(1)
	after := w.generations()
	if after["b"] != before["b"] || after["d"] != before["d"] {
		t.Errorf("clusters that it does not change were written: %v, %v", before, after)
	}
	sync := w.syncOf("c")
	if got := string(sync.Package.Kustomize.Spec.Raw); !strings.Contains(got, `"kind":"Deployment"`) || len(sync.ControlPlaneBindings) != 1 {
		t.Errorf("c is assigned %s and %+v", got, sync.ControlPlaneBindings)
	}
	w.still("all have what they should")
	at := types.NamespacedName{Namespace: w.namespace, Name: app}
	for name, want := range map[string]string{"b": "changes nothing on it", "c": "with overrides eu, big, and ready"} {
		if x, err := hub.ExplainCluster(t.Context(), w.client, model.KindModule, at, name); err != nil || !strings.Contains(x.Sentence, want) {
			t.Errorf("%s: %q, %v", name, x.Sentence, err)
		}
	}

	w.must("v2", spec, euPatch+", "+bigOne) // a change of the rest is one of all clusters
	w.assigns("a:v2+eu b:v2 c:v2+eu+big d:v2")
	w.waits("Complete", "")
	w.player.atMost(1)
}

// syncOf is what a cluster is assigned.
func (w *world) syncOf(name string) *v1alpha1.ProxySync {
	w.t.Helper()
	a := &v1alpha1.ProxyAssemblage{}
	if err := w.get(a, name); err != nil || len(a.Spec.Assemblage.Syncs) != 1 {
		w.t.Fatal(err, a.Spec)
	}
	return &a.Spec.Assemblage.Syncs[0]
}

// Labels that change what clusters are assigned keep the budget, and are no new revision.
func TestChangedLabelsKeepTheBudget(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b", "c")
	w.must("v1", oneByOne, euPatch)
	w.assigns("a:v1 b:v1 c:v1")
	w.waits("Complete", "")
	target := w.status().TargetRevision
	w.player.decree(v1alpha1.StateUpdating, "v1+eu")
	for _, name := range []string{"a", "b", "c"} {
		w.label(name, "eu")
	}
	w.waits("Progressing", "updating")
	w.then(func() error {
		if n := strings.Count(fmt.Sprint(w.player.told("v1+eu")), " "); n != 0 || w.status().TargetRevision != target {
			return fmt.Errorf("assigned to %s, target %s", w.player.told("v1+eu"), w.status().TargetRevision)
		}
		return nil
	})
	w.player.decree(v1alpha1.StateSucceeded, "v1+eu")
	w.assigns("a:v1+eu b:v1+eu c:v1+eu")
	w.waits("Complete", "")
	w.player.atMost(1)
	w.label("b", "us")
	w.assigns("a:v1+eu b:v1 c:v1+eu")
	w.still("all have what they should")
}

// An override that fails is given up, and only the clusters that have it return.
func TestAnOverrideThatFailsReturns(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a region=eu", "b region=us", "c region=eu")
	spec := `selector: {}, strategy: Incremental, rollout: {maxUnreadyClusters: 1, onFailure: Rollback}`
	w.must("v1", spec, "")
	w.waits("Complete", "")
	before := w.generations()
	w.player.decree(v1alpha1.StateFailed, "v1+eu")
	w.must("v1", spec, euPatch)
	w.waits("RolledBack", "failed and was rolled back")
	w.assigns("a:v1 b:v1 c:v1")
	if n := strings.Count(w.player.told("v1+eu"), " "); n != 0 || w.status().GivenUp == nil || w.status().GivenUp.Cluster == "b" {
		t.Errorf("it was assigned to %s, and given up by %+v", w.player.told("v1+eu"), w.status().GivenUp)
	}
	if sync := w.syncOf("b"); w.generations()["b"] > before["b"]+1 || sync.Overrides != nil { // the copy of what was given up is one write
		t.Errorf("b was written: %+v", sync)
	}
}

// What an edit has made of an assignment is put right immediately, by the overrides that it has.
func TestAnEditedOverrideIsPutRight(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a region=eu")
	w.must("v1", oneByOne, bigOne+", "+euPatch)
	w.assigns("a:v1+eu")
	w.waits("Complete", "")
	a := &v1alpha1.ProxyAssemblage{}
	if err := w.get(a, "a"); err != nil {
		t.Fatal(err)
	}
	a.Spec.Assemblage.Syncs[0].Package = nil
	if err := w.client.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	w.then(func() error {
		if p := w.syncOf("a").Package; p == nil || p.Kustomize == nil {
			return fmt.Errorf("it is %+v", p)
		}
		return nil
	})
	w.still("it was put right")
}

// What loses its last patch or value is no object without anything, which the API server refuses: also where the
// template itself changes.
func TestWhatLosesItsLastFieldIsLeftOut(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a")
	w.module("v1", oneByOne)
	for _, pkg := range []string{`kustomize: {spec: {patches: [{patch: x}]}}`, `kustomize: {spec: {}}`, `helm: {values: {image: {tag: x}}}`, `helm: {values: {image: {}}}`, `helm: {}`} {
		m := &v1alpha1.Module{}
		if err := w.get(m, app); err != nil {
			t.Fatal(err)
		}
		m.Spec.Template.Spec.Sync.Package = nil
		if err := yaml.Unmarshal([]byte("{"+pkg+"}"), &m.Spec.Template.Spec.Sync.Package); err != nil {
			t.Fatal(err)
		}
		if err := w.client.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		w.waits("Complete", "")
		if w.status().TargetRevision != w.syncOf("a").Revision {
			t.Errorf("%s is not assigned: %+v", pkg, w.syncOf("a"))
		}
	}
	w.still("all is as it should be")
}

// A chart has values, and a BootstrapModule overrides like any other.
func TestOverridesOfValues(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a region=eu")
	values := `{name: eu, clusters: {matchLabels: {region: eu}}, values: {replicas: 3, image: {tag: eu}, extra: null}}`
	if err := w.overridden(model.KindBootstrap, "v1", oneByOne, "helm: {values: {image: {name: web, tag: all}, list: [1]}}", values); err != nil {
		t.Fatal(err)
	}
	w.then(func() error {
		a := &v1alpha1.RemoteAssemblage{}
		if err := w.get(a, "a"); err != nil || len(a.Spec.Syncs) == 0 {
			return fmt.Errorf("%+v: %w", a.Spec, err)
		}
		if got := string(a.Spec.Syncs[0].Package.Helm.Values.Raw); got != `{"extra":null,"image":{"name":"web","tag":"eu"},"list":[1],"replicas":3}` {
			return fmt.Errorf("the values are %s", got)
		}
		return nil
	})
}

// What the API server refuses, and what stalls the module with the field that is wrong.
func TestMistakesInOverrides(t *testing.T) {
	w := newWorld(t)
	w.manage()
	for overrides, want := range map[string]string{
		`{name: a, clusters: {}}`: "one of controlPlaneBindings, patches and values must be set",
		`{name: a, clusters: {}, patches: [{patch: x}], values: {a: 1}}`: "at most one of patches and values",
		`{name: A, clusters: {}, values: {a: 1}}`:                        "should match",
	} {
		if err := w.overridden(model.KindModule, "v1", oneByOne, "", overrides); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", overrides, err)
		}
	}
	for overrides, want := range map[string]string{
		`{name: a, clusters: {}, values: {a: 1}}`:                                                    "spec.template.spec.overrides[0].values: only a chart has them",
		`{name: a, clusters: {matchExpressions: [{key: a, operator: Like}]}, patches: [{patch: x}]}`: `spec.template.spec.overrides[0].clusters: "Like" is not a valid label selector operator`,
	} {
		w.must("v1", oneByOne, overrides)
		w.waits("Stalled", want)
	}
}
