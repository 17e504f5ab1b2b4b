package hub_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// What the rollout RFC asks for, and what it leaves open: a test for each that is named
// after it. Its examples on real clusters are in package proxy, and so is that bindings
// are evaluated where assemblages are carried out.

// theirs returns an assemblage that another manager keeps for a cluster.
func (w *world) theirs(name, on, sync, tag string) *v1alpha1.ProxyAssemblage {
	w.t.Helper()
	p := &v1alpha1.ProxyAssemblage{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.KubeconfigRef.Name = cluster.SecretName(on)
	source := &v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://x.test/theirs", Version: v1alpha1.GitVersion{Tag: tag}}}
	p.Spec.Assemblage.Syncs = []v1alpha1.ProxySync{{NamedSync: v1alpha1.NamedSync{
		Assignment: v1alpha1.Assignment{Name: sync}, Sync: v1alpha1.Sync{Source: source},
	}}}
	w.create(p)
	return p
}

// Several assemblages of one cluster, some of which others keep: a module leaves them
// alone, and does not assign what one of them assigns by the same name.
func TestRFCSeveralAssemblagesOfACluster(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b")
	other := w.theirs("a-theirs", "a", "other", "v8")
	w.theirs("b-theirs", "b", app, "v9")
	w.module("v1", everywhere)
	w.comes("a:v1 b-theirs:v9")
	w.waits("Waiting", "b is waiting: another manager keeps a sync named app in it")
	w.remove(&v1alpha1.ProxyAssemblage{}, "b-theirs")
	w.complete("a:v1 b:v1")
	still := &v1alpha1.ProxyAssemblage{}
	if err := w.get(still, "a-theirs"); err != nil || still.Generation != other.Generation {
		t.Errorf("it was written to: %+v, %v", still.Spec, err)
	}
}

// A new rollout while another is in progress takes its place, in the same order and under
// the same budget; no other cluster gets the revision of the first.
func TestRFCANewRolloutDuringARollout(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b", "c")
	w.module("v1", oneByOne)
	w.complete("a:v1 b:v1 c:v1")
	w.player.decree(v1alpha1.StateUpdating, "v2")
	w.module("v2", oneByOne)
	w.waits("Progressing", "is updating")
	w.module("v3", oneByOne)
	w.complete("a:v3 b:v3 c:v3")
	first := w.player.told("v2")
	if strings.Contains(first, " ") || !strings.HasPrefix(w.player.told("v3"), first+" ") {
		t.Errorf("v2 got to %s, v3 to %s", first, w.player.told("v3"))
	}
	w.player.atMost(1)
}

// The control plane is set up again from nothing but the modules: all that was assigned,
// the revisions and what was reported are lost. And a single cluster whose assemblage is
// lost while all goes on.
func TestRFCRecoverTheControlPlaneAndOneCluster(t *testing.T) {
	w := newWorld(t)
	stop := w.manage()
	w.clusters("a", "b")
	w.module("v1", oneByOne)
	w.complete("a:v1 b:v1")
	before := w.revisions()
	stop()
	for _, obj := range []client.Object{&v1alpha1.ProxyAssemblage{}, &spillway.ModuleRevision{}} {
		if err := w.client.DeleteAllOf(t.Context(), obj, client.InNamespace(w.namespace)); err != nil {
			t.Fatal(err)
		}
	}
	w.manage()
	w.complete("a:v1 b:v1")
	if after := w.revisions(); strings.Join(after, " ") != strings.Join(before, " ") {
		t.Errorf("the revisions are %v, and were %v", after, before)
	}
	w.remove(&v1alpha1.ProxyAssemblage{}, "a")
	w.complete("a:v1 b:v1")
}

// Tenancy: the clusters of a module are those of its namespace; of another one nothing is
// read into it or written from it.
func TestRFCTenancy(t *testing.T) {
	w := newWorld(t)
	elsewhere := testenv.Namespace(t)
	w.options.Namespaces = []string{w.namespace, elsewhere}
	w.manage()
	w.clusters("a")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: elsewhere, Name: cluster.SecretName("b"), Labels: map[string]string{"spillway.dev/cluster": "true"},
	}}
	if err := w.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	w.module("v1", everywhere)
	w.complete("a:v1")
	w.still("the other cluster has another manager")
	list := &v1alpha1.ProxyAssemblageList{}
	if err := w.client.List(t.Context(), list, client.InNamespace(elsewhere)); err != nil || len(list.Items) > 0 {
		t.Errorf("in the other namespace there is %v: %v", list.Items, err)
	}
}
