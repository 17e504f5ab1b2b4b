package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
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
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/vocabulary"
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

	w.rebuild(3)
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
			if len(p.Spec.Assemblage.Syncs) != 1 || p.Spec.Assemblage.Syncs[0].Source.Git == nil {
				continue // it has not been read from the cluster yet
			}
			if p.Spec.Assemblage.Syncs[0].Source.Git.Version.Revision != "" && p.Status.Adopted != "" && p.Status.ObservedGeneration == p.Generation {
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

// exact waits until a cluster is assigned the commit of its tag, and has it.
func (w *world) exact(cluster string) {
	w.Helper()
	testenv.Eventually(w.T, func(context.Context) error {
		p := proxied()
		status := w.status(p, cluster)
		if s := p.Spec.Assemblage.Syncs[0]; s.Source.Git.Version.Revision == "" || status.ObservedGeneration != p.Generation || status.Syncs[0].State != v1alpha1.StateSucceeded {
			return fmt.Errorf("%+v, %+v", s, status)
		}
		return nil
	})
}

// repointed waits until Flux applies what the agent of a cluster was assigned last, and the source from
// before is gone: that the sync has succeeded says less, as it was so already.
func (w *world) repointed(cluster int) {
	w.Helper()
	testenv.Eventually(w.T, func(ctx context.Context) error {
		sources, all := &sourcev1.GitRepositoryList{}, &kustomizev1.KustomizationList{}
		if err := errors.Join(w.on(cluster).List(ctx, sources, client.InNamespace(w.namespace)), w.on(cluster).List(ctx, all, client.InNamespace(w.namespace))); err != nil {
			return err
		}
		if len(sources.Items) != 1 || len(all.Items) != 1 || all.Items[0].Spec.SourceRef.Name != sources.Items[0].Name {
			return fmt.Errorf("%d sources, %+v", len(sources.Items), all.Items)
		}
		return nil
	})
}

// rebuild loses the hub with its etcd, and makes a new one with so many clusters.
func (w *world) rebuild(clusters int) {
	w.Helper()
	w.stop()
	w.plane = testenv.Workload(bare)
	w.hub = newClient(w.T, w.plane)
	w.create(w.hub, namespaceOf(w))
	w.manage()
	for i := range clusters {
		w.create(w.hub, testenv.KubeconfigSecret(w.T, w.namespace, fmt.Sprintf("c%d", i), testenv.Workload(i)))
		w.label(i, map[string]string{})
	}
}

// steadily is a Module as moduleOneByOne has it, with more about its rollout.
func (w *world) steadily(tag, rollout string) {
	w.Helper()
	m := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shop"}}
	w.write(m, func() {
		m.Spec = v1alpha1.ModuleSpec{}
		if err := yaml.UnmarshalStrict(fmt.Appendf(nil, oneByOne+"rollout: {orderBy: {labelKey: place}%s}\n", w.url, tag, rollout), &m.Spec); err != nil {
			w.Fatal(err)
		}
	})
}

// written is everything but what becomes of it: the agent there may still report.
func (w *world) written(clusters int) string {
	w.Helper()
	return regexp.MustCompile(", version [0-9]+").ReplaceAllString(w.everything(clusters), "")
}

// numbered makes three clusters, which run the first version, and go one after the other.
func (w *world) numbered() {
	w.Helper()
	w.manage()
	for i := range 3 {
		w.join(i)
		w.label(i, map[string]string{"place": fmt.Sprint(i)})
	}
	w.publish("v1")
	w.steadily("v1", "")
	w.runs("v1", "v1", "v1")
	w.phase("Complete")
}

// The hub is lost while one cluster of three has the new revision. The new hub takes over all of them as they
// are, and goes on with the others: the one that has it is not touched.
func TestAHubThatIsRebuiltInARolloutGoesOn(t *testing.T) {
	w := newWorld(t)
	w.numbered()
	w.publish("v2")
	w.steadily("v2", ", minReadySeconds: 3600")
	w.runs("v2", "v1", "v1")
	w.phase("Progressing")
	w.exact("c0")
	w.repointed(0) // by then nothing is left to be written to it
	before := w.written(1)
	w.rebuild(3)
	w.steadily("v2", "")
	w.runs("v2", "v2", "v2")
	w.phase("Complete")
	if after := w.written(1); after != before {
		t.Errorf("on the cluster that had it there was\n%s\nand now there is\n%s", before, after)
	}
}

// givesUp has the hub give up v2, after which all three clusters run v1 again and have a copy of the verdict.
func (w *world) givesUp() {
	w.Helper()
	w.numbered()
	w.publishText("v2", "}{")
	w.steadily("v2", ", onFailure: Rollback")
	w.phase("RolledBack")
	w.runs("v1", "v1", "v1")
	w.copied(3)
}

// The hub is lost after it has given up a revision. The new hub, to which the same manifests are applied, knows
// that from the clusters: nothing is sent, and it is said why. The next revision is rolled out.
func TestAHubThatIsRebuiltDoesNotSendWhatWasGivenUp(t *testing.T) {
	w := newWorld(t)
	w.givesUp()
	before := w.everything(3)
	w.rebuild(3)
	w.steadily("v2", ", onFailure: Rollback")
	w.phase("RolledBack")
	w.copied(3)
	if after := w.everything(3); after != before {
		t.Errorf("on the clusters there was\n%s\nand now there is\n%s", before, after)
	}
	m := &v1alpha1.Module{}
	if err := w.hub.Get(t.Context(), w.key("shop"), m); err != nil {
		t.Fatal(err)
	}
	if g := m.Status.GivenUp; g == nil || g.Cluster != "c0" || !strings.Contains(m.Status.WaitingFor, "the clusters keep what they run: "+m.Status.RolledBack+" was given up ") || !strings.Contains(m.Status.WaitingFor, "c0 failed: ") {
		t.Errorf("%+v, %s", m.Status.GivenUp, m.Status.WaitingFor)
	}
	w.publish("v3")
	w.steadily("v3", ", onFailure: Rollback")
	w.runs("v3", "v3", "v3")
	w.phase("Complete")
}

// The user retries on such a hub what was given up, as it was corrected where it is fetched. A cluster that joins
// the hub later tells that it was given up: that is known, and stops nothing.
func TestARetryCountsMoreThanCopies(t *testing.T) {
	w := newWorld(t)
	w.givesUp()
	w.rebuild(2)
	for i := range 2 {
		w.label(i, map[string]string{"place": fmt.Sprint(i)})
	}
	const staged = ", onFailure: Rollback, stages: [{name: canary, clusters: 1, gates: [{name: approve}]}, {name: rest}]"
	w.steadily("v2", staged)
	w.phase("RolledBack")
	w.publish("v2")
	ref := describe.Ref{Kind: model.KindModule, Namespace: w.namespace, Name: "shop"}
	if _, err := act.Do(t.Context(), w.hub, act.Request{Verb: act.Retry, Ref: ref}, act.Author{By: "carol", At: metav1.Now()}); err != nil {
		t.Fatal(err)
	}
	w.runs("v2", "v1", "v1")
	w.create(w.hub, testenv.KubeconfigSecret(w.T, w.namespace, "c2", testenv.Workload(2)))
	w.label(2, map[string]string{})
	testenv.Eventually(t, func(ctx context.Context) error {
		p := proxied()
		if err := w.hub.Get(ctx, w.key("c2"), p); err != nil || len(p.Spec.Assemblage.Syncs) != 1 || !p.Spec.Assemblage.Syncs[0].Found {
			return fmt.Errorf("c2 is not taken over: %+v, %w", p.Spec, err)
		}
		return nil
	})
	w.approve()
	w.runs("v2", "v2", "v2")
	w.phase("Complete")
}

// copied waits until a copy of what was given up lies with so many clusters.
func (w *world) copied(clusters int) {
	w.Helper()
	for i := range clusters {
		testenv.Eventually(w.T, func(ctx context.Context) error {
			list := &v1alpha1.AssemblageList{}
			if err := w.on(i).List(ctx, list, client.InNamespace(w.namespace)); err != nil {
				return err
			}
			for j := range list.Items {
				if vocabulary.GivenUp.Get(list.Items[j].Annotations) == "" {
					return fmt.Errorf("c%d has no copy: %v", i, list.Items[j].Annotations)
				}
			}
			return nil
		})
	}
	testenv.Eventually(w.T, func(ctx context.Context) error {
		list := &v1alpha1.ProxyAssemblageList{}
		if err := w.hub.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			p := &list.Items[i]
			if len(p.Spec.Assemblage.Syncs) != 1 || p.Status.ObservedGeneration != p.Generation || p.Status.Syncs[0].State != v1alpha1.StateSucceeded {
				return fmt.Errorf("%s: %+v", p.Name, p.Status)
			}
		}
		return nil
	})
}

// bootstraps is a BootstrapModule as steadily has it of a Module.
func (w *world) bootstraps(tag, rollout string) {
	w.Helper()
	m := &v1alpha1.BootstrapModule{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shop"}}
	w.write(m, func() {
		m.Spec = v1alpha1.ModuleSpec{}
		if err := yaml.UnmarshalStrict(fmt.Appendf(nil, oneByOne+"rollout: {orderBy: {labelKey: place}%s}\n", w.url, tag, rollout), &m.Spec); err != nil {
			w.Fatal(err)
		}
	})
}

// bootstrapping waits until the BootstrapModule is in a phase.
func (w *world) bootstrapping(phase string) *v1alpha1.BootstrapModule {
	w.Helper()
	m := &v1alpha1.BootstrapModule{}
	testenv.Eventually(w.T, func(ctx context.Context) error {
		if err := w.hub.Get(ctx, w.key("shop"), m); err != nil {
			return err
		}
		if m.Status.Phase != phase || m.Status.ObservedGeneration != m.Generation {
			return fmt.Errorf("%s: %s", m.Status.Phase, m.Status.WaitingFor)
		}
		return nil
	})
	return m
}

// The hub is lost after a BootstrapModule has given up a revision. Nothing of that lies on the clusters, as nothing
// of Spillway does: the new hub tries the revision on the first cluster, and stops there. The others keep what
// they run, and nothing is pruned anywhere.
func TestAHubThatIsRebuiltTriesABootstrapModuleOnOneCluster(t *testing.T) {
	w := newWorld(t)
	w.manage()
	for i := range 3 {
		w.create(w.on(i), namespaceOf(w))
		w.join(i)
		w.label(i, map[string]string{"place": fmt.Sprint(i)})
	}
	w.publish("v1")
	w.bootstraps("v1", "")
	w.runs("v1", "v1", "v1")
	w.bootstrapping("Complete")
	w.publishText("v2", "}{")
	w.bootstraps("v2", ", onFailure: Rollback")
	w.bootstrapping("RolledBack")
	w.runs("v1", "v1", "v1")
	before := w.everything(3)

	w.rebuild(3)
	for i := range 3 {
		w.label(i, map[string]string{"place": fmt.Sprint(i)})
	}
	w.bootstraps("v2", ", onFailure: Rollback")
	m := w.bootstrapping("Failed")
	if !strings.Contains(m.Status.WaitingFor, "c0 failed") || m.Status.Summary.Updated != 1 {
		t.Errorf("%s, %+v", m.Status.WaitingFor, m.Status.Summary)
	}
	if after := w.everything(3); after != before {
		t.Errorf("on the clusters there was\n%s\nand now there is\n%s", before, after)
	}
}
