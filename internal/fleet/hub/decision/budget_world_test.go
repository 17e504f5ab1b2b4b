package decision_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// A town is some modules that share budgets on some clusters, as an API server has it: what is written is refused unless it
// names the current version. Managers decide from views each part of which is of any time, and what they write
// may arrive at any later time, or never. Whatever they do, the budgets are kept; and once they see what there
// is, all comes to its end and nothing is noted any more.
type town struct {
	rand    *rand.Rand
	now     time.Time
	version int
	state   townState
	past    []townState
	wire    []func()
	worst   [2]int
}

type townState struct {
	version  int
	modules  map[string]townModule
	budgets  []model.Budget
	clusters map[string]townCluster
}

type townModule struct {
	version int
	tag     string
	status  v1alpha1.ModuleStatus
}

type townCluster struct {
	version    int
	generation int64
	fence      string
	syncs      map[string]model.Record
}

var towns = []string{"a", "b", "c"}

func newTown(seed uint64) *town {
	w := &town{rand: rand.New(rand.NewPCG(seed, 1)), now: noon, version: 1}
	w.state = townState{modules: map[string]townModule{}, clusters: map[string]townCluster{}}
	for _, name := range towns {
		w.state.modules[name] = townModule{version: 1, tag: "v1", status: v1alpha1.ModuleStatus{CurrentRevision: revisionIn(name, "v1"), TargetRevision: revisionIn(name, "v1")}}
	}
	for i := range 4 {
		c := townCluster{version: 1, generation: 1, syncs: map[string]model.Record{}}
		for _, name := range towns {
			c.syncs[name] = model.Record{Assigned: true, Reported: true, Revision: revisionIn(name, "v1"), Succeeded: revisionIn(name, "v1"), State: v1alpha1.StateSucceeded, Proven: true, DeletionPolicy: v1alpha1.Delete, AssignedAt: noon.Add(-time.Hour), Since: noon.Add(-time.Hour)}
		}
		w.state.clusters[fmt.Sprintf("c%d", i)] = c
	}
	w.state.budgets = []model.Budget{
		{Name: "alone", ResourceVersion: "1", Generation: 1, Spec: spillway.ClusterBudgetSpec{MaxModulesPerCluster: new(int32(1))}},
		{Name: "regions", ResourceVersion: "1", Generation: 1, Spec: spillway.ClusterBudgetSpec{MaxClusters: new(int32(1)), GroupBy: &spillway.GroupBy{LabelKey: "region"}}},
	}
	return w
}

func revisionIn(module, tag string) string {
	return model.RevisionName(model.KindModule, module, templateOf(tag))
}

func regionOf(cluster string) string { return string('x' + (cluster[1]-'0')%2) }

// changed is called before something is changed, and returns the new version.
func (w *town) changed() int {
	old := w.state
	old.modules, old.clusters, old.budgets = maps.Clone(old.modules), map[string]townCluster{}, slices.Clone(old.budgets)
	for name, c := range w.state.clusters {
		c.syncs = maps.Clone(c.syncs)
		old.clusters[name] = c
	}
	for i := range old.budgets {
		old.budgets[i].Modules = slices.Clone(old.budgets[i].Modules)
	}
	w.past = append(w.past, old)
	w.version++
	w.state.version = w.version
	return w.version
}

// some is the state at some time, now if the view is to be fresh.
func (w *town) some(fresh bool) townState {
	if i := len(w.past) - 1 - w.rand.IntN(20); !fresh && w.rand.IntN(2) == 0 && i >= 0 {
		return w.past[i]
	}
	return w.state
}

// view is what a manager sees of a module.
func (w *town) view(name string, fresh, live bool) model.Observed {
	modules, budgets, clusters := w.some(fresh).modules, w.some(fresh).budgets, w.some(fresh || live)
	m := modules[name]
	o := model.Observed{Now: w.now, Live: live, AsOf: strconv.Itoa(max(1, clusters.version)), Budgets: slices.Clone(budgets)}
	o.Module = model.Module{Kind: model.KindModule, Name: name, UID: types.UID(name), ResourceVersion: strconv.Itoa(m.version), Finalized: true, Status: *m.status.DeepCopy()}
	o.Module.Spec.Strategy, o.Module.Spec.Selector = v1alpha1.Incremental, &metav1.LabelSelector{}
	o.Module.Spec.Rollout = &v1alpha1.Rollout{MaxUnreadyClusters: new(intstr.FromString("100%"))}
	o.Module.Spec.Template = &v1alpha1.ModuleTemplate{Spec: templateOf(m.tag)}
	for i, tag := range []string{"v1", "v2", "v3"} {
		o.Revisions = append(o.Revisions, model.Revision{Name: revisionIn(name, tag), Number: int64(i + 1)})
	}
	for _, other := range towns {
		o.Sharers = append(o.Sharers, model.Sharer{Kind: model.KindModule, Name: other})
	}
	for _, cluster := range slices.Sorted(maps.Keys(clusters.clusters)) {
		c := clusters.clusters[cluster]
		o.Clusters = append(o.Clusters, model.Cluster{Name: cluster, UID: types.UID(cluster), Ready: true, Labels: map[string]string{"region": regionOf(cluster)}})
		r := c.syncs[name]
		r.Cluster, r.Name, r.UID, r.ResourceVersion, r.Generation, r.Fence = cluster, cluster, types.UID("of "+cluster), strconv.Itoa(c.version), c.generation, c.fence
		o.Records = append(o.Records, r)
	}
	return o
}

// pass is one of a manager. What it writes goes on the wire.
func (w *town) pass(name string, fresh bool) {
	o := w.view(name, fresh, false)
	p := decision.Decide(o)
	if p.NeedsLive {
		o = w.view(name, fresh, true)
		p = decision.Decide(o)
	}
	for i := range p.Writes {
		write := p.Writes[i]
		w.send(fresh, func() { w.write(name, &write) })
	}
	if p.Permits || len(p.Writes) == 0 || w.rand.IntN(2) == 0 {
		w.send(fresh, func() { w.writeStatus(name, o.Module.ResourceVersion, p.Status) })
	}
}

func (w *town) send(fresh bool, write func()) {
	switch n := w.rand.IntN(10); {
	case fresh || n < 6:
		write()
	case n < 9:
		w.wire = append(w.wire, write)
	}
}

func (w *town) writeStatus(name, version string, status v1alpha1.ModuleStatus) {
	if m := w.state.modules[name]; strconv.Itoa(m.version) == version {
		m.version, m.status = w.changed(), status
		w.state.modules[name] = m
	}
}

func (w *town) write(name string, write *decision.Write) {
	if write.Act == decision.Note {
		w.note(name, write)
		return
	}
	c := w.state.clusters[write.Record.Cluster]
	if strconv.Itoa(c.version) != write.Record.ResourceVersion {
		return
	}
	c.version = w.changed()
	if write.Act == decision.Fence {
		c.fence = write.Record.ResourceVersion
	} else {
		r := c.syncs[name]
		r.Revision, r.AssignedAt, r.Reported, r.Proven = write.Revision, write.AssignedAt, false, false
		c.syncs[name] = r
		c.generation++
	}
	w.state.clusters[write.Record.Cluster] = c
	w.look()
}

func (w *town) note(name string, write *decision.Write) {
	i := slices.IndexFunc(w.state.budgets, func(b model.Budget) bool { return b.Name == write.Budget.Name })
	if w.state.budgets[i].ResourceVersion != write.Budget.ResourceVersion {
		return
	}
	version := w.changed()
	b := &w.state.budgets[i]
	b.ResourceVersion = strconv.Itoa(version)
	b.Modules = slices.DeleteFunc(slices.Clone(b.Modules), func(m spillway.BudgetModule) bool { return m.Name == name })
	if write.Note != nil {
		b.Modules = append(b.Modules, *write.Note)
	}
}

// report is what a cluster says of a module.
func (w *town) report(cluster, name string, state v1alpha1.State) {
	c := w.state.clusters[cluster]
	r := c.syncs[name]
	if r.Reported && r.State == state {
		return
	}
	c.version = w.changed()
	r.Reported, r.State, r.Since = true, state, w.now
	if state == v1alpha1.StateSucceeded {
		r.Succeeded, r.Proven = r.Revision, true
	}
	c.syncs[name] = r
	w.state.clusters[cluster] = c
}

// look notes how many modules are updating one cluster, and how many clusters of a region are.
func (w *town) look() {
	regions := map[string]int{}
	for cluster, c := range w.state.clusters {
		n := 0
		for _, r := range c.syncs {
			if !r.Proven {
				n++
			}
		}
		if w.worst[0] = max(w.worst[0], n); n > 0 {
			regions[regionOf(cluster)]++
			w.worst[1] = max(w.worst[1], regions[regionOf(cluster)])
		}
	}
}

// step is something that happens.
func (w *town) step() {
	w.now = w.now.Add(time.Duration(w.rand.IntN(3000)) * time.Millisecond)
	name, cluster := towns[w.rand.IntN(len(towns))], fmt.Sprintf("c%d", w.rand.IntN(4))
	switch n := w.rand.IntN(40); {
	case n < 1:
		m := w.state.modules[name]
		m.version, m.tag = w.changed(), fmt.Sprintf("v%d", 1+w.rand.IntN(3))
		w.state.modules[name] = m
	case n < 8:
		state := v1alpha1.StateSucceeded
		if w.rand.IntN(8) == 0 {
			state = v1alpha1.StateFailed
		}
		if r := w.state.clusters[cluster].syncs[name]; !r.Reported || r.State == v1alpha1.StateFailed {
			w.report(cluster, name, state)
		}
	case n < 12 && len(w.wire) > 0:
		i := w.rand.IntN(len(w.wire))
		w.wire[i]()
		w.wire = slices.Delete(w.wire, i, i+1)
	default:
		w.pass(name, false)
	}
}

// ends is nil once all managers see what there is, and all that is assigned succeeds, and all is done.
func (w *town) ends() error {
	var left error
	for range 400 {
		w.now = w.now.Add(time.Second)
		for cluster := range w.state.clusters {
			for _, name := range towns {
				w.report(cluster, name, v1alpha1.StateSucceeded)
			}
		}
		for _, name := range towns {
			w.pass(name, true)
		}
		if left = w.left(); left == nil {
			return nil
		}
	}
	return left
}

func (w *town) left() error {
	for name, m := range w.state.modules {
		for cluster, c := range w.state.clusters {
			if is, want := c.syncs[name].Revision, revisionIn(name, m.tag); is != want {
				return fmt.Errorf("%s of %s is at %s, and is to be at %s: %s", name, cluster, is, want, m.status.WaitingFor)
			}
		}
	}
	for _, b := range w.state.budgets {
		for _, m := range b.Modules {
			if len(m.Clusters) > 0 {
				return fmt.Errorf("%s has noted %+v", m.Name, m.Clusters)
			}
		}
	}
	return nil
}

func TestSharedBudgetsAreKeptWhateverManagersSee(t *testing.T) {
	moved := 0
	for seed := range uint64(40) {
		w := newTown(seed)
		for range 600 {
			if w.step(); w.worst[0] > 1 || w.worst[1] > 1 {
				t.Fatalf("seed %d: %d modules on a cluster, %d clusters of a region were updating at a time", seed, w.worst[0], w.worst[1])
			}
		}
		if err := w.ends(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		moved += w.version
	}
	t.Logf("%d writes", moved)
}
