package proxy_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// oneByOne is a Module that goes to one cluster after another.
const oneByOne = `
selector: {matchLabels: {fleet: "yes"}}
strategy: Incremental
template:
  spec: {sync: {source: {git: {url: %q, version: {tag: %s}}}, timeout: 30s}}
`

func (w *world) moduleOneByOne(tag string) {
	w.Helper()
	m := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shop"}}
	w.write(m, func() {
		m.Spec = v1alpha1.ModuleSpec{}
		if err := yaml.UnmarshalStrict(fmt.Appendf(nil, oneByOne, w.url, tag), &m.Spec); err != nil {
			w.Fatal(err)
		}
	})
}

// The hub is lost with its etcd, and the same manifests are applied to a new one: nothing
// changes on any cluster, and the new hub rolls out the next revision.
func TestARebuiltHubTakesItsFleetBack(t *testing.T) {
	w := newWorld(t)
	w.manage()
	for i := range 3 {
		w.join(i)
		w.label(i, map[string]string{})
	}
	w.publish("v1")
	w.publish("v2")
	w.moduleOneByOne("v1")
	w.runs("v1", "v1", "v1")
	w.phase("Complete")
	before := w.everything(3)
	w.stop()

	w.plane = testenv.Workload(bare)
	w.hub = newClient(t, w.plane)
	w.create(w.hub, namespaceOf(w))
	w.manage()
	for i := range 3 {
		w.create(w.hub, testenv.KubeconfigSecret(t, w.namespace, fmt.Sprintf("c%d", i), testenv.Workload(i)))
		w.label(i, map[string]string{})
	}
	w.moduleOneByOne("v1")
	w.phase("Complete")
	w.taken(3)
	if after := w.everything(3); after != before {
		t.Errorf("on the clusters there was\n%s\nand now there is\n%s", before, after)
	}
	w.moduleOneByOne("v2")
	w.runs("v2", "v2", "v2")
	w.phase("Complete")
}

// taken waits until so many clusters are assigned the commit that they run.
func (w *world) taken(clusters int) {
	w.Helper()
	testenv.Eventually(w.T, func(ctx context.Context) error {
		list := &v1alpha1.ProxyAssemblageList{}
		if err := w.hub.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		n := 0
		for i := range list.Items {
			p := &list.Items[i]
			if len(p.Spec.Assemblage.Syncs) == 1 && p.Spec.Assemblage.Syncs[0].Source.Git.Version.Revision != "" && p.Status.Adopted != "" && p.Status.ObservedGeneration == p.Generation {
				n++
			}
		}
		if n != clusters {
			return fmt.Errorf("%d of %d clusters are", n, clusters)
		}
		return nil
	})
}

// everything is what there is on the first clusters: versions of what others do not write
// to, and generations where Flux keeps a status.
func (w *world) everything(clusters int) string {
	w.Helper()
	var lines []string
	for i := range clusters {
		for _, list := range []client.ObjectList{&v1alpha1.AssemblageList{}, &kustomizev1.KustomizationList{}, &sourcev1.GitRepositoryList{}, &corev1.ConfigMapList{}} {
			if err := w.on(i).List(w.Context(), list, client.InNamespace(w.namespace)); err != nil {
				w.Fatal(err)
			}
			lines = append(lines, objectsOf(i, list)...)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func objectsOf(cluster int, list client.ObjectList) []string {
	var lines []string
	add := func(o client.Object, version string) {
		lines = append(lines, fmt.Sprintf("c%d %T %s %s, generation %d, %s", cluster, o, o.GetName(), o.GetUID(), o.GetGeneration(), version))
	}
	switch l := list.(type) {
	case *v1alpha1.AssemblageList:
		for i := range l.Items {
			add(&l.Items[i], "version "+l.Items[i].ResourceVersion)
		}
	case *corev1.ConfigMapList:
		for i := range l.Items {
			add(&l.Items[i], "version "+l.Items[i].ResourceVersion)
		}
	case *kustomizev1.KustomizationList:
		for i := range l.Items {
			add(&l.Items[i], fmt.Sprint(l.Items[i].Annotations))
		}
	case *sourcev1.GitRepositoryList:
		for i := range l.Items {
			add(&l.Items[i], fmt.Sprint(l.Items[i].Annotations))
		}
	}
	return lines
}
