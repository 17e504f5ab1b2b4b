package hub_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// These are the defects of fleeet that are the hub's, by their numbers in
// its analysis. The others are tested with the assemblages.

// Defect 1: a source that all clusters share moves them all at the same time. What a cluster
// is assigned names a revision, and another cluster has another.
func TestDefect1TwoRevisionsAtATimeOfABootstrapModule(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b")
	w.apply(model.KindBootstrap, "v1", oneByOne)
	w.eventually(func() error {
		m := &v1alpha1.BootstrapModule{}
		if err := w.get(m, app); err != nil || m.Status.Phase != "Complete" {
			w.remoteSucceeds("a")
			w.remoteSucceeds("b")
			return fmt.Errorf("it is %s: %w", m.Status.Phase, err)
		}
		return w.remotes("a:v1", "b:v1")
	})
	w.apply(model.KindBootstrap, "v2", oneByOne)
	w.then(func() error {
		if w.remotes("a:v2", "b:v1") != nil && w.remotes("a:v1", "b:v2") != nil {
			return errors.New("want one at v2, and the other at v1")
		}
		return nil
	})
}

// remotes is nil if the RemoteAssemblages have these tags.
func (w *world) remotes(want ...string) error {
	list := &v1alpha1.RemoteAssemblageList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		return err
	}
	var got []string
	for _, a := range list.Items {
		for _, s := range a.Spec.Syncs {
			got = append(got, a.Name+":"+s.Source.Git.Version.Tag+s.Source.Git.Version.Revision)
			if s.Revision == "" || s.AssignedAt == nil || a.Spec.KubeconfigRef.Name != a.Name+"-kubeconfig" {
				return fmt.Errorf("assigned %+v", s)
			}
		}
	}
	for _, word := range want {
		if !slices.Contains(got, word) {
			return fmt.Errorf("they run %v, want %s", got, word)
		}
	}
	return nil
}

func (w *world) remoteSucceeds(name string) {
	w.t.Helper()
	w.remoteSucceedsWith(name, "")
}

// remoteSucceedsWith is that, and says what was applied.
func (w *world) remoteSucceedsWith(name, resolved string) {
	w.t.Helper()
	a := &v1alpha1.RemoteAssemblage{}
	if err := w.get(a, name); err != nil || len(a.Spec.Syncs) == 0 {
		return
	}
	s, now := a.Spec.Syncs[0], metav1.NowMicro()
	a.Status.Syncs = []v1alpha1.SyncStatus{{
		Name: s.Name, Revision: s.Revision, AssignedAt: s.AssignedAt, State: v1alpha1.StateSucceeded, LastTransitionTime: &now, LastSucceededRevision: s.Revision, Resolved: resolved,
	}}
	if err := w.client.Status().Update(w.t.Context(), a); err != nil && !isConflict(err) {
		w.t.Fatal(err)
	}
}

// Defect 2: success at an older assignment is not taken for success at this one.
func TestDefect2AStaleReportNeverCounts(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b")
	w.module("v1", oneByOne)
	w.complete("a:v1 b:v1")
	w.player.pause() // the reports stay as they are: success, of v1
	w.module("v2", oneByOne)
	w.waits("Progressing", "is updating")
	w.bystander()
	if n := strings.Count(w.runs(), ":v2"); n != 1 {
		t.Errorf("they run %s", w.runs())
	}
	w.player.resume()
	w.complete("a:v2 b:v2")
}

// Defect 3: that its health check has failed is a failure, not an update that lasts
// for ever; and what takes too long has failed too.
func TestDefect3WhatFailsHasFailed(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b")
	spec := `selector: {}, strategy: Incremental, rollout: {progressDeadlineSeconds: 3600}`
	w.module("v1", spec)
	w.complete("a:v1 b:v1")
	w.player.decree(v1alpha1.StateUpdating, "v2")
	w.module("v2", spec)
	w.waits("Progressing", "is updating: updating")
	w.barrier.Step(t, time.Hour)
	w.waits("Failed", " not ready after 1h (progress deadline)")
	if s := w.status().Summary; s.Failed != 1 || s.Updating != 0 {
		t.Errorf("%+v", s)
	}
	w.player.decree(v1alpha1.StateFailed, "v2")
	w.waits("Failed", " failed: not healthy (HealthCheckFailed)")
	w.player.decree(v1alpha1.StateSucceeded, "v2") // by then it is ready after all
	w.complete("a:v2 b:v2")
}

// Defect 4: a module that is deleted, or that does not select a cluster any more,
// takes its sync out of the assemblage, and leaves those of others.
func TestDefect4WhatIsNotWantedIsTakenAway(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a env=prod", "b env=prod")
	w.module("v1", `selector: {matchLabels: {env: prod}}`)
	w.complete("a:v1 b:v1")
	w.bystanderOn("a")
	w.patch(&corev1.Secret{}, "b-kubeconfig", `{"metadata":{"labels":{"env":"dev"}}}`)
	w.complete("a:v1")
	w.remove(&v1alpha1.Module{}, app)
	w.then(func() error { return w.isGone(&v1alpha1.Module{}, app) })
	a := &v1alpha1.ProxyAssemblage{}
	if err := w.get(a, "a"); err != nil || len(a.Spec.Assemblage.Syncs) != 1 || a.Spec.Assemblage.Syncs[0].Name != "other" {
		t.Errorf("what is left: %+v %v", a.Spec.Assemblage.Syncs, err)
	}
}

// bystanderOn has a third party assign something to a cluster, in the same record.
func (w *world) bystanderOn(name string) {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	doc := fmt.Sprintf(`{"spec":{"kubeconfigRef":{"name":"%s-kubeconfig"},"assemblage":{"syncs":[{"name":"other","source":{"git":{"url":"https://x","version":{"tag":"v9"}}}}]}}}`, name)
	if err := json.Unmarshal([]byte(doc), &u.Object); err != nil {
		w.t.Fatal(err)
	}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ProxyAssemblage"))
	u.SetNamespace(w.namespace)
	u.SetName(name)
	if err := w.client.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("third-party")); err != nil {
		w.t.Fatal(err)
	}
}

// Where another manager says the same of the same sync it stays, and is that manager's; the module
// is deleted all the same, and does not wait until something wakes it.
func TestAModuleIsDeletedThoughAnotherManagerSharesItsEntry(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a")
	w.module("v1", everywhere)
	w.complete("a:v1")
	shared := &v1alpha1.ProxyAssemblage{}
	if err := w.get(shared, "a"); err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	raw, err := json.Marshal(map[string]any{"spec": shared.Spec})
	if err := errors.Join(err, json.Unmarshal(raw, &u.Object)); err != nil {
		t.Fatal(err)
	}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ProxyAssemblage"))
	u.SetNamespace(w.namespace)
	u.SetName("a")
	if err := w.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("third-party")); err != nil {
		t.Fatal(err)
	}
	w.remove(&v1alpha1.Module{}, app)
	w.then(func() error { return w.isGone(&v1alpha1.Module{}, app) })
	w.comes("a:v1")
}

// Deletion policy Orphan: the client that carries it out knows before the sync is removed.
func TestOrphanIsSaidBeforeTheSyncIsRemoved(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a env=prod")
	w.module("v1", `selector: {matchLabels: {env: prod}}`)
	w.complete("a:v1")
	w.player.pause()
	w.module("v1", `selector: {matchLabels: {env: prod}}, deletionPolicy: Orphan`)
	w.remove(&v1alpha1.Module{}, app)
	w.then(func() error {
		a := &v1alpha1.ProxyAssemblage{}
		if err := w.get(a, "a"); err != nil || len(a.Spec.Assemblage.Syncs) == 0 || a.Spec.Assemblage.Syncs[0].DeletionPolicy != v1alpha1.Orphan {
			return fmt.Errorf("%+v: %w", a.Spec, err)
		}
		return nil
	})
	w.bystander()
	if got := w.runs(); got == "" {
		t.Error("the sync is removed before anybody can know that what runs is to stay")
	}
	w.player.resume()
	w.then(func() error { return w.isGone(&v1alpha1.Module{}, app) })
}

// It is said also where the revisions have gone before, as they do when the module is
// deleted in the foreground; and nothing else of the sync changes.
func TestOrphanIsSaidOfARevisionThatIsGone(t *testing.T) {
	w := newWorld(t)
	stop := w.manage()
	w.clusters("a env=prod")
	w.module("v1", `selector: {matchLabels: {env: prod}}`)
	w.complete("a:v1")
	stop()
	w.player.pause()
	w.module("v1", `selector: {matchLabels: {env: prod}}, deletionPolicy: Orphan`)
	w.remove(&v1alpha1.Module{}, app)
	if err := w.client.DeleteAllOf(t.Context(), &spillway.ModuleRevision{}, client.InNamespace(w.namespace)); err != nil {
		t.Fatal(err)
	}
	before := &v1alpha1.ProxyAssemblage{}
	if err := w.get(before, "a"); err != nil {
		t.Fatal(err)
	}
	w.manage()
	after := &v1alpha1.ProxyAssemblage{}
	w.then(func() error {
		if err := w.get(after, "a"); err != nil || len(after.Spec.Assemblage.Syncs) == 0 || after.Spec.Assemblage.Syncs[0].DeletionPolicy != v1alpha1.Orphan {
			return fmt.Errorf("%+v: %w", after.Spec, err)
		}
		return nil
	})
	after.Spec.Assemblage.Syncs[0].DeletionPolicy = before.Spec.Assemblage.Syncs[0].DeletionPolicy
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	w.player.resume()
	w.then(func() error { return w.isGone(&v1alpha1.Module{}, app) })
}

// Defect 5: a cluster that turns unready is never unassigned; and one that was never
// ready is assigned nothing.
func TestDefect5UnreadyIsNotUnassigned(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.capiCluster("a env=prod", true)
	w.capiCluster("b env=prod", false)
	w.module("v1", everywhere)
	w.complete("a:v1")
	w.initialize("a", false)
	w.waits("Waiting", "a is up to date but not ready: its control plane is not up")
	w.bystander()
	if got := w.runs(); got != "a:v1" {
		t.Errorf("they run %q", got)
	}
	w.remove(&corev1.Secret{}, "a-kubeconfig") // a kubeconfig that is missing is no reason either
	w.bystander()
	if got := w.runs(); got != "a:v1" {
		t.Errorf("they run %q", got)
	}
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a-kubeconfig"}})
	w.initialize("a", true)
	w.initialize("b", true)
	w.complete("a:v1 b:v1")
}

// A cluster that is not there any more is waited for no longer, and one that is being
// deleted is left alone.
func TestAClusterThatIsDeletedIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.capiCluster("a", true)
	w.capiCluster("b", true)
	w.module("v1", oneByOne)
	w.complete("a:v1 b:v1")
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(cluster.GVK)
	w.patch(u, "b", `{"metadata":{"finalizers":["x.test/wait"]}}`)
	w.remove(u, "b")
	w.module("v2", oneByOne)
	w.then(func() error {
		if got := w.runs(); got != "a:v2 b:v1" {
			return fmt.Errorf("they run %s: %s", got, w.says())
		}
		return nil
	})
	w.waits("Complete", "")
	w.patch(u, "b", `{"metadata":{"finalizers":null}}`)
	w.then(func() error { // with the cluster goes what was assigned to it
		if got := w.runs(); got != "a:v2" {
			return fmt.Errorf("they run %s", got)
		}
		return nil
	})
	if c := w.status().Clusters; c != "1/1" {
		t.Errorf("clusters %s", c)
	}
}

// Defect 7: names are bounded, with hashes, and may be labels.
func TestDefect7NamesAreBounded(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a")
	name := strings.Repeat("long-", 39) + "x"
	m := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec.Selector = &metav1.LabelSelector{}
	m.Spec.Strategy = v1alpha1.Incremental
	m.Spec.Rollout = &v1alpha1.Rollout{Stages: []v1alpha1.Stage{{Name: strings.Repeat("s", 63), Gates: []v1alpha1.Gate{{Name: strings.Repeat("g/", 126) + "g", When: v1alpha1.Before}}}}}
	m.Spec.Sync = &v1alpha1.Sync{Source: &v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://x.test/a", Version: v1alpha1.GitVersion{Tag: "v1"}}}}
	w.create(m)
	w.eventually(func() error {
		w.approve()
		if err := w.get(m, name); err != nil || m.Status.CurrentRevision == "" {
			return fmt.Errorf("%+v: %w", m.Status, err)
		}
		return nil
	})
	if n := len(m.Status.CurrentRevision); n > 63 {
		t.Errorf("%d characters", n)
	}
}

// Defect 8: many modules write one record, each its own entry, and none loses
// anything.
func TestDefect8ManyModulesShareARecord(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a")
	const n = 12
	for i := range n {
		m := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%d", i)}}
		m.Spec.Selector = &metav1.LabelSelector{}
		m.Spec.Sync = &v1alpha1.Sync{Source: &v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://x.test/a", Version: v1alpha1.GitVersion{Tag: "v1"}}}}
		w.create(m)
	}
	w.eventually(func() error {
		w.atRest(time.Minute) // who lost against others waits before it tries again
		a := &v1alpha1.ProxyAssemblage{}
		if err := w.get(a, "a"); err != nil || len(a.Spec.Assemblage.Syncs) != n {
			return fmt.Errorf("%d syncs: %w", len(a.Spec.Assemblage.Syncs), err)
		}
		list := &v1alpha1.ModuleList{}
		if err := w.client.List(t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for _, m := range list.Items {
			if m.Status.Phase != "Complete" || m.Status.Clusters != "1/1" {
				return fmt.Errorf("%s is %s %s", m.Name, m.Status.Phase, m.Status.WaitingFor)
			}
		}
		return nil
	})
}

// What fleeet has assigned is taken over without anything moving: it says no
// revision, but is what one says.
func TestWhatFleeetHasAssignedIsTakenOver(t *testing.T) {
	w := newWorld(t)
	w.clusters("a", "b")
	git := v1alpha1.GitSource{URL: "https://x.test/a", Version: v1alpha1.GitVersion{Tag: "v1"}}
	for _, name := range []string{"a", "b"} {
		a := &v1alpha1.ProxyAssemblage{ObjectMeta: metav1.ObjectMeta{Name: name}}
		a.Spec.KubeconfigRef.Name = name + "-kubeconfig"
		sync := v1alpha1.ProxySync{}
		sync.Name, sync.Source = app, &v1alpha1.Source{Git: &git}
		a.Spec.Assemblage.Syncs = []v1alpha1.ProxySync{sync}
		w.create(a)
	}
	w.comes("a:v1 b:v1")
	w.manage()
	w.module("v1", oneByOne)
	w.complete("a:v1 b:v1")
	w.module("v2", oneByOne)
	w.complete("a:v2 b:v2")
	w.player.atMost(1)
}

// What a user has edited by hand in an assemblage is put right, and counts as no
// move.
func TestWhatIsEditedByHandIsPutRight(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a")
	w.module("v1", oneByOne)
	w.complete("a:v1")
	before := &v1alpha1.ProxyAssemblage{}
	if err := w.get(before, "a"); err != nil {
		t.Fatal(err)
	}
	edited := before.DeepCopy()
	edited.Spec.Assemblage.Syncs[0].Source.Git.Version.Tag = "v7"
	if err := w.client.Update(t.Context(), edited, client.FieldOwner("human")); err != nil && !isConflict(err) {
		t.Fatal(err)
	}
	w.complete("a:v1")
	after := &v1alpha1.ProxyAssemblage{}
	if err := w.get(after, "a"); err != nil || !after.Spec.Assemblage.Syncs[0].AssignedAt.Equal(before.Spec.Assemblage.Syncs[0].AssignedAt) {
		t.Errorf("%+v %v", after.Spec.Assemblage.Syncs[0], err)
	}
}

// New clusters get the current good revision immediately, and take no place in the
// budget; then they have their turn.
func TestRFCNewClustersTakeNoPlaceInTheBudget(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a canary=true", "b")
	w.module("v1", canary)
	w.decide("canary", metav1.ConditionTrue)
	w.complete("a:v1 b:v1")
	w.player.decree(v1alpha1.StateUpdating, "v2")
	w.module("v2", canary)
	w.comes("a:v2! b:v1")
	w.clusters("c", "d canary=true")
	w.comes("a:v2! b:v1 c:v1 d:v2!") // d got v1 first, and is a canary
	if told := w.player.told("v1"); !strings.Contains(told, "c") || !strings.Contains(told, "d") {
		t.Errorf("v1 got to %s", told)
	}
	w.player.decree(v1alpha1.StateSucceeded, "v2")
	w.decide("canary", metav1.ConditionTrue)
	w.complete("a:v2 b:v2 c:v2 d:v2")
}

// External: revisions and gates are made, and a report, but nothing is assigned.
func TestRFCThirdPartiesRollOutByThemselves(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a canary=true", "b")
	spec := strings.Replace(canary, "Incremental", "External", 1)
	w.module("v1", spec)
	w.then(func() error {
		if n := len(w.gates()); n != 1 || len(w.revisions()) != 1 {
			return fmt.Errorf("%d gates, revisions %v", n, w.revisions())
		}
		if s := w.status(); s.Summary == nil || s.Summary.Total != 2 || s.Summary.Waiting != 2 {
			return errors.New(w.says())
		}
		return nil
	})
	w.still("it is External")
	if got := w.runs(); got != "" {
		t.Errorf("they run %s", got)
	}
	m := &v1alpha1.Module{}
	if err := w.get(m, app); err != nil || len(m.Finalizers) > 0 {
		t.Errorf("finalizers %v %v", m.Finalizers, err)
	}
}

// Of revisions as many are kept as should be, and those in use.
func TestRFCHistory(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a")
	spec := everywhere + `, revisionHistoryLimit: 1`
	for _, tag := range []string{"v1", "v2", "v3", "v4"} {
		w.module(tag, spec)
		w.complete("a:" + tag)
	}
	w.then(func() error {
		if got := w.revisions(); len(got) != 2 {
			return fmt.Errorf("revisions %v", got)
		}
		return nil
	})
	r := &spillway.ModuleRevision{}
	if err := w.get(r, w.status().CurrentRevision); err != nil || r.Spec.Number != 4 || r.Status.Resolved != "sha1:v4" {
		t.Errorf("%+v %+v %v", r.Spec, r.Status, err)
	}
}

// A revision and a gate that a user deletes soon after they were made are recreated.
func TestWhatIsDeletedIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a canary=true", "b")
	w.module("v1", canary)
	w.waits("Waiting", "canary is waiting: gate approve is pending")
	first := w.gates()[0].UID
	w.remove(&spillway.RolloutGate{}, w.gates()[0].Name)
	w.gateIsNot(first)
	revision, old := w.status().TargetRevision, &spillway.ModuleRevision{}
	if err := w.get(old, revision); err != nil {
		t.Fatal(err)
	}
	w.remove(&spillway.ModuleRevision{}, revision)
	w.then(func() error { return w.get(&spillway.ModuleRevision{}, revision) })
	for _, g := range w.gates() { // it goes with the revision that it was of, when that is noticed
		if g.OwnerReferences[0].UID == old.UID {
			_ = w.client.Delete(t.Context(), &g)
		}
	}
	w.arrives("a:v1 b:v1", noFault)
}

// orphan creates a revision without an owner, as one whose module was deleted
// without it.
func (w *world) orphan(tag string, template v1alpha1.TemplateSpec) {
	w.t.Helper()
	w.create(&spillway.ModuleRevision{ObjectMeta: metav1.ObjectMeta{Name: revisionOf(tag)}, Spec: spillway.ModuleRevisionSpec{
		ModuleRef: spillway.ModuleReference{Kind: model.KindModule, Name: app}, Number: 7, Template: template,
	}})
}

// A revision of the name that a module needs is taken over if it has no owner and says the
// same; otherwise it is said whose it is, and nothing is tried again and again.
func TestARevisionThatIsThereAlready(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a")
	w.orphan("v1", templateOf("v1"))
	w.module("v1", everywhere)
	w.complete("a:v1")
	r := &spillway.ModuleRevision{}
	if err := w.get(r, revisionOf("v1")); err != nil || r.Spec.Number != 7 || len(r.OwnerReferences) != 1 {
		t.Errorf("%+v %v", r, err)
	}
	w.orphan("v2", templateOf("v3"))
	w.module("v2", everywhere)
	w.waits("Waiting", "without an owner, and does not say what the module does; delete it")
	w.still("it waits for a person")
	w.remove(&spillway.ModuleRevision{}, revisionOf("v2"))
	w.complete("a:v2")
}

// gateIsNot waits until there is a gate, and not that one.
func (w *world) gateIsNot(uid types.UID) {
	w.t.Helper()
	w.then(func() error {
		if gates := w.gates(); len(gates) != 1 || gates[0].UID == uid {
			return fmt.Errorf("%d gates", len(gates))
		}
		return nil
	})
}

// A window that is shut keeps a revision from going anywhere, and says when it opens.
func TestOutsideOfAWindowNothingMoves(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a")
	w.module("v1", everywhere)
	w.complete("a:v1")
	shut := everywhere + `, rollout: {windows: [{schedule: "0 0 29 2 *", durationSeconds: 1, timeZone: Europe/London}]}`
	w.module("v2", shut)
	w.waits("Waiting", "no window is open until 29 Feb 00:00:00 UTC")
	w.module("v2", everywhere+`, rollout: {windows: [{schedule: "* * * * *", durationSeconds: 90}]}`)
	w.complete("a:v2")
	w.module("v3", everywhere+`, rollout: {windows: [{schedule: "61 * * * *", durationSeconds: 90}]}`)
	w.waits("Stalled", "spec.rollout.windows[0].schedule: ")
	w.module("v3", everywhere+`, rollout: {windows: [{schedule: "0 * * * *", durationSeconds: 90, timeZone: Europe/Atlantis}]}`)
	w.waits("Stalled", `spec.rollout.windows[0].timeZone: "Europe/Atlantis" must be the name of a time zone`)
}

// Clusters that no stage selects: last, not at all, or nothing goes on.
func TestUnmatchedClusters(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a stage=a", "b")
	spec := func(unmatched string) string {
		return `selector: {}, strategy: Incremental, rollout: {unmatchedClusters: ` + unmatched + `, stages: [{name: a, selector: {matchLabels: {stage: a}}}]}`
	}
	w.module("v1", spec("Fail"))
	w.waits("Stalled", "1 clusters belong to no stage, b among them")
	w.module("v1", spec("Exclude"))
	w.complete("a:v1")
	w.module("v1", spec("Last"))
	w.complete("a:v1 b:v1")
	if s := w.status().Stages; len(s) != 2 || s[1].Name != "others" {
		t.Errorf("%+v", s)
	}
}

// An assemblage with the name of one cluster that says it is for another keeps the module from
// that cluster, and from no other; and the module says so.
func TestAnAssemblageOfAnotherClustersNameStopsNoOther(t *testing.T) {
	w := newWorld(t)
	w.clusters("a", "b")
	w.create(&v1alpha1.ProxyAssemblage{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec:       v1alpha1.ProxyAssemblageSpec{KubeconfigRef: v1alpha1.LocalReference{Name: cluster.SecretName("x")}},
	})
	w.manage()
	w.module("v1", `selector: {}, rollout: {maxUnreadyClusters: 100%}`)
	w.happens("b:v1")
	w.eventually(func() error {
		if said := w.says(); !strings.Contains(said, "ProxyAssemblage a is for cluster x") {
			return errors.New(said)
		}
		return nil
	})
}

// A manager stops before it makes a move that is permitted, and the module is suspended: the next
// one withdraws the move by the assemblage, and only then it is gone from the status.
func TestAMoveThatIsNotWantedIsWithdrawn(t *testing.T) {
	w, inj := newWorld(t), fault.New()
	w.clusters("a")
	inj.StopAtMatching(1, fault.Before, func(r fault.Request) bool { return r.Resource == "proxyassemblages" && r.Verb == "patch" })
	stop := w.managed(inj)
	w.module("v1", everywhere)
	<-inj.Stopped()
	stop()
	w.patch(&v1alpha1.Module{}, app, `{"spec":{"suspend":true}}`)
	w.manage()
	w.eventually(func() error {
		a := &v1alpha1.ProxyAssemblage{}
		if err := w.get(a, "a"); err != nil || vocabulary.Withdrawn.Get(a.Annotations) == "" || len(w.status().Moves) > 0 {
			return fmt.Errorf("%v: %s: %w", a.Annotations, w.says(), err)
		}
		return nil
	})
	if got := w.runs(); got != "" {
		t.Errorf("they run %s", got)
	}
	w.patch(&v1alpha1.Module{}, app, `{"spec":{"suspend":false}}`)
	w.complete("a:v1")
}
