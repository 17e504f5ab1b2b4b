package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// witness sees every version of the assemblages of both kinds, and knows from their resource versions, which one etcd
// has given them, which modules were updating which clusters at the same time. It knows nothing of budgets. It also does for
// RemoteAssemblages what the player does for the others: all succeeds.
type witness struct {
	w  *world
	mu sync.Mutex
	// changes are when a module has begun to update a cluster, or has ceased to.
	changes []turning
	last    map[string]bool
}

type turning struct {
	version         uint64
	module, cluster string
	begins          bool
}

func (w *world) witness() *witness {
	w.t.Helper()
	x := &witness{w: w, last: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	for _, list := range []client.ObjectList{&v1alpha1.ProxyAssemblageList{}, &v1alpha1.RemoteAssemblageList{}} {
		events, err := w.client.Watch(ctx, list, client.InNamespace(w.namespace))
		if err != nil {
			w.t.Fatal(err)
		}
		done.Go(func() {
			for e := range events.ResultChan() {
				x.see(ctx, e)
			}
		})
		w.t.Cleanup(events.Stop)
	}
	w.t.Cleanup(func() { cancel(); done.Wait() })
	return x
}

func (x *witness) see(ctx context.Context, e watch.Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch a := e.Object.(type) {
	case *v1alpha1.ProxyAssemblage:
		var syncs []v1alpha1.Assignment
		for i := range a.Spec.Assemblage.Syncs {
			syncs = append(syncs, a.Spec.Assemblage.Syncs[i].Assignment)
		}
		x.note(a, "Module ", syncs, &a.Status, e.Type == watch.Deleted)
	case *v1alpha1.RemoteAssemblage:
		var syncs []v1alpha1.Assignment
		answer := a.DeepCopy()
		answer.Status = v1alpha1.AssemblageStatus{ObservedGeneration: a.Generation}
		for i := range a.Spec.Syncs {
			s := a.Spec.Syncs[i].Assignment
			syncs = append(syncs, s)
			answer.Status.Syncs = append(answer.Status.Syncs, v1alpha1.SyncStatus{
				Name: s.Name, Revision: s.Revision, AssignedAt: s.AssignedAt, State: v1alpha1.StateSucceeded, LastSucceededRevision: s.Revision,
				LastSucceededAssignedAt: s.AssignedAt, LastTransitionTime: s.AssignedAt, DeletionPolicy: s.DeletionPolicy,
			})
		}
		x.note(a, "BootstrapModule ", syncs, &a.Status, e.Type == watch.Deleted)
		if a.Status.ObservedGeneration != a.Generation && e.Type != watch.Deleted {
			if err := x.w.client.Status().Update(ctx, answer); err != nil && ctx.Err() == nil && !isConflict(err) && !apierrors.IsNotFound(err) {
				x.w.t.Error(err)
			}
		}
	}
}

// note notes of each module whether it is updating a cluster: it is assigned what has not succeeded yet, or was
// removed and is still reported.
func (x *witness) note(a client.Object, kind string, syncs []v1alpha1.Assignment, status *v1alpha1.AssemblageStatus, gone bool) {
	version, err := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	if err != nil {
		x.w.t.Error(err)
	}
	is := map[string]bool{}
	for i := range syncs {
		s := &syncs[i]
		is[kind+s.Name] = !slices.ContainsFunc(status.Syncs, func(r v1alpha1.SyncStatus) bool {
			return r.Name == s.Name && r.LastSucceededRevision == s.Revision && r.LastSucceededAssignedAt.Equal(s.AssignedAt)
		})
	}
	for i := range status.Syncs {
		if name := kind + status.Syncs[i].Name; !is[name] {
			is[name] = !slices.ContainsFunc(syncs, func(s v1alpha1.Assignment) bool { return s.Name == status.Syncs[i].Name })
		}
	}
	for key := range x.last {
		if module, cluster, _ := strings.Cut(key, " on "); cluster == a.GetName() && strings.HasPrefix(module, kind) {
			is[module] = is[module] && !gone
		}
	}
	for module, updating := range is {
		if key := module + " on " + a.GetName(); x.last[key] != updating {
			x.last[key] = updating
			x.changes = append(x.changes, turning{version, module, a.GetName(), updating})
		}
	}
}

// worst are the most modules on one cluster, and the most clusters of one group, that were updating at the same time.
func (x *witness) worst(group func(cluster string) string) (modules, clusters int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	slices.SortStableFunc(x.changes, func(a, b turning) int { return int(a.version) - int(b.version) })
	on := map[string]map[string]bool{}
	for _, c := range x.changes {
		if on[c.cluster] == nil {
			on[c.cluster] = map[string]bool{}
		}
		if c.begins {
			on[c.cluster][c.module] = true
		} else {
			delete(on[c.cluster], c.module)
		}
		groups := map[string]int{}
		for name, updating := range on {
			modules = max(modules, len(updating))
			if len(updating) > 0 {
				groups[group(name)]++
				clusters = max(clusters, groups[group(name)])
			}
		}
	}
	return modules, clusters
}

// keeps is that never more modules than that were updating one cluster, nor more clusters of a group.
func (x *witness) keeps(modules, clusters int, group func(string) string) {
	x.w.t.Helper()
	m, c := x.worst(group)
	if modules > 0 && m > modules || clusters > 0 && c > clusters {
		x.w.t.Errorf("%d modules were updating one cluster, and %d clusters of a group were updating, at a time: %+v", m, c, x.changes)
	}
	if len(x.changes) == 0 {
		x.w.t.Error("the witness has seen nothing")
	}
}

func one(string) string { return "" }

func region(cluster string) string { return strings.TrimRight(cluster, "0123456789") }

func (w *world) budget(name, spec string) {
	w.t.Helper()
	b := &spillway.ClusterBudget{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte("{"+spec+"}"), &b.Spec); err != nil {
		w.t.Fatal(err)
	}
	w.create(b)
}

// others are the modules besides app: another one, and one of the other kind.
const other, base = "other", "base"

// atOnce updates three clusters at a time, were it not for the budget.
const atOnce = everywhere + `, strategy: Incremental, rollout: {maxUnreadyClusters: 3, progressDeadlineSeconds: 3600}`

// allAt applies the modules with a tag.
func (w *world) allAt(tag string) {
	w.t.Helper()
	w.module(tag, atOnce)
	w.applyAs(model.KindModule, other, tag, atOnce)
	w.applyAs(model.KindBootstrap, base, tag, atOnce)
}

// areAt waits until the modules are complete at a tag, and nothing is noted of them any more.
func (w *world) areAt(tag string, meanwhile func()) {
	w.t.Helper()
	w.eventually(func() error {
		meanwhile()
		for _, m := range []client.Object{&v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Name: app}}, &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Name: other}}, &v1alpha1.BootstrapModule{ObjectMeta: metav1.ObjectMeta{Name: base}}} {
			if err := w.get(m, m.GetName()); err != nil {
				return err
			}
			spec, s := model.Parts(m)
			if s.Phase != "Complete" || s.ObservedGeneration != m.GetGeneration() || spec.Template.Spec.Sync.Source.Git.Version.Tag != tag || s.CurrentRevision != s.TargetRevision || len(s.Moves) > 0 {
				return fmt.Errorf("%s %s at %s: %s", m.GetName(), s.Phase, s.TargetRevision, s.WaitingFor)
			}
		}
		return w.nothingNoted()
	})
}

func (w *world) nothingNoted() error {
	list := &spillway.ClusterBudgetList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		for _, m := range list.Items[i].Status.Modules {
			if len(m.Clusters) > 0 {
				return fmt.Errorf("%s %s has noted %+v", m.Kind, m.Name, m.Clusters)
			}
		}
	}
	return nil
}

const (
	byRegion = `maxClusters: 1, groupBy: {labelKey: region}`
	alone    = `maxModulesPerCluster: 1`
)

// Without a budget the witness sees what a budget is for.
func TestWithoutASharedBudgetModulesMeet(t *testing.T) {
	w := newWorld(t)
	x := w.witness()
	w.manage()
	w.clusters("eu1 region=eu", "eu2 region=eu", "us1 region=us")
	w.player.pause()
	w.allAt("v1")
	w.then(func() error {
		if m, c := x.worst(region); m < 2 || c < 2 {
			return fmt.Errorf("%d modules, %d clusters", m, c)
		}
		return nil
	})
	w.player.resume()
	w.areAt("v1", noFault)
}

// With one, they do not, also where both kinds of modules share it; and at the end all is at rest.
func TestModulesShareABudget(t *testing.T) {
	w := newWorld(t)
	x := w.witness()
	w.manage()
	w.clusters("eu1 region=eu", "eu2 region=eu", "us1 region=us")
	w.budget("alone", alone)
	w.budget("regions", byRegion)
	w.allAt("v1")
	w.areAt("v1", noFault)
	w.allAt("v2")
	w.areAt("v2", noFault)
	x.keeps(1, 1, region)
	w.bystander() // it shares them, too
	w.still("complete")
}

// So it is with two managers that know nothing of each other, of which one is behind for a while.
func TestFaultTwoHubsShareABudget(t *testing.T) {
	w := newWorld(t)
	x, lagging := w.witness(), fault.New()
	w.managed(lagging)
	w.managed(fault.New())
	w.clusters("eu1 region=eu", "eu2 region=eu", "us1 region=us")
	w.budget("alone", alone)
	w.budget("regions", byRegion)
	w.allAt("v1")
	w.areAt("v1", noFault)
	release := lagging.HoldWatches()
	w.disturbed = true
	w.allAt("v2")
	w.happens("us1:v2")
	release()
	w.areAt("v2", noFault)
	x.keeps(1, 1, region)
}

// And with managers each of which stops at the first write that it can.
func TestFaultTheManagerStopsAtEveryWriteOfASharedBudget(t *testing.T) {
	testenv.AtEveryWrite(t, 10, func(t *testing.T, begin fault.Begin) {
		w := newWorld(t)
		x := w.witness()
		w.clusters("eu1 region=eu", "eu2 region=eu", "us1 region=us")
		w.budget("alone", alone)
		w.budget("regions", byRegion)
		w.allAt("v1")
		next := begin(func(i *fault.Injector) func() { return w.managed(i) })
		w.areAt("v1", next)
		w.allAt("v2")
		w.areAt("v2", next)
		x.keeps(1, 1, region)
	})
}

// A budget that comes while modules are updating counts what has begun before it: nothing else begins until then.
func TestASharedBudgetThatComesLaterCountsWhatHasBegun(t *testing.T) {
	w := newWorld(t)
	w.witness()
	w.manage()
	w.clusters("a", "b", "c")
	w.allAt("v1")
	w.areAt("v1", noFault)
	w.player.decree(v1alpha1.StateUpdating, "v2")
	w.module("v2", oneByOne)
	w.waits("Progressing", "is updating: updating")
	moved := w.movedTo("v2")
	w.budget("one", `maxClusters: 1`)
	w.applyAs(model.KindModule, other, "v9", atOnce)
	w.then(func() error {
		return w.isWaiting(other, "ClusterBudgetUsed", "ClusterBudget one: 1 of 1 clusters allowed updating ("+moved+": Module app")
	})
	w.player.decree(v1alpha1.StateSucceeded, "v2")
	w.complete("a:v2 b:v2 c:v2")
	w.then(w.nothingNoted)
}

// isWaiting is that a module is waiting, on some cluster, for a reason, as its record says.
func (w *world) isWaiting(name, reason, text string) error {
	m := &v1alpha1.Module{}
	if err := w.get(m, name); err != nil {
		return err
	}
	if !strings.Contains(m.Status.WaitingFor, text) {
		return fmt.Errorf("%s waits for %q, want %q", name, m.Status.WaitingFor, text)
	}
	for _, c := range m.Status.Conditions {
		if c.Type == "Ready" && c.Reason == reason {
			return nil
		}
	}
	return fmt.Errorf("no condition of %s has the reason %s: %+v", name, reason, m.Status.Conditions)
}

// What has failed keeps its place, and is named; its module gets back, as that takes no other place.
func TestWhatHasFailedKeepsItsPlaceInASharedBudget(t *testing.T) {
	w := newWorld(t)
	x := w.witness()
	w.manage()
	w.clusters("a", "b", "c")
	w.budget("one", `maxClusters: 1, maxModulesPerCluster: 1`)
	w.allAt("v1")
	w.areAt("v1", noFault)
	w.player.decree(v1alpha1.StateFailed, "v2")
	w.module("v2", atOnce)
	w.waits("Failed", "failed: not healthy")
	w.applyAs(model.KindModule, other, "v3", atOnce)
	w.then(func() error { return w.isWaiting(other, "ClusterBudgetUsed", "Module app has failed") })
	w.module("v1", atOnce)
	w.complete("a:v1 b:v1 c:v1")
	w.then(func() error { return w.isWaiting(other, "Complete", "") })
	w.then(w.nothingNoted)
	x.keeps(1, 1, one)
}

// A module that is deleted, a cluster that is, and one that a user pins, keep no place for ever.
func TestPlacesInASharedBudgetAreGivenBack(t *testing.T) {
	for name, gives := range map[string]func(w *world, moved string){
		"the module is deleted": func(w *world, _ string) { w.remove(&v1alpha1.Module{}, app) },
		"the cluster is deleted": func(w *world, moved string) {
			w.remove(&corev1.Secret{}, moved+"-kubeconfig")
			w.remove(&v1alpha1.ProxyAssemblage{}, moved)
			w.module("v1", atOnce)
		},
		"the cluster is pinned": func(w *world, moved string) {
			w.patch(&v1alpha1.Module{}, app, `{"spec":{"suspend":true}}`)
			w.hold(moved, "its disk is full")
		},
		"the budget is deleted": func(w *world, _ string) { w.remove(&spillway.ClusterBudget{}, "one") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.witness()
			w.manage()
			w.clusters("a", "b", "c")
			w.allAt("v1")
			w.areAt("v1", noFault)
			w.budget("one", `maxClusters: 1`)
			w.player.decree(v1alpha1.StateUpdating, "v2")
			w.module("v2", atOnce)
			w.waits("Progressing", ": Module app)") // b waits for a, both of its own
			w.applyAs(model.KindModule, other, "v3", atOnce)
			moved := w.movedTo("v2")
			w.then(func() error { return w.isWaiting(other, "ClusterBudgetUsed", moved+": Module app") })
			gives(w, moved)
			w.then(func() error { return w.isWaiting(other, "Complete", "") })
			w.then(w.nothingNoted)
		})
	}
}

// The budget of one namespace is none of another.
func TestASharedBudgetIsThatOfItsNamespace(t *testing.T) {
	w, tenant := newWorld(t), newWorldNow(t)
	w.witness()
	w.manage()
	tenant.budget("none", `maxClusters: 1, modules: {matchExpressions: [{key: a, operator: In}]}`)
	w.clusters("a", "b")
	w.allAt("v1")
	w.areAt("v1", noFault)
	w.budget("none", `maxClusters: 1, modules: {matchExpressions: [{key: a, operator: In}]}`)
	w.module("v2", atOnce)
	w.then(func() error {
		return w.isWaiting(app, "ClusterBudgetUsed", `ClusterBudget none: spec.modules: values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty; correct it`)
	})
	w.patch(&spillway.ClusterBudget{}, "none", `{"spec":{"modules":null}}`)
	w.complete("a:v2 b:v2")
}

func TestBadBudgetsAreRefused(t *testing.T) {
	w := newWorld(t)
	for spec, want := range map[string]string{
		`{}`:               "one of maxClusters and maxModulesPerCluster must be set",
		`{maxClusters: 0}`: "spec.maxClusters",
		`{maxModulesPerCluster: 1, groupBy: {labelKey: region}}`: "groupBy requires maxClusters",
	} {
		b := &spillway.ClusterBudget{ObjectMeta: metav1.ObjectMeta{Name: "bad", Namespace: w.namespace}}
		if err := yaml.UnmarshalStrict([]byte(spec), &b.Spec); err != nil {
			t.Fatal(err)
		}
		if err := w.client.Create(t.Context(), b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", spec, err)
		}
	}
}
