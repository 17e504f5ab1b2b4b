package simulate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// Fault is what happens to the managers of a change.
type Fault struct {
	// Write is the write at which the manager stops, counted from 1; zero is none. Each is that those after it stop as
	// well, at the first write that they can: so one of them stops at every write of the change.
	Write int
	Each  bool
	// Answered is that the write was made; otherwise it was not sent. It does not know which.
	Answered bool
	// Down is how long no manager runs then.
	Down time.Duration
}

// Played is what a change came to.
type Played struct {
	// Steps are by what is rolled out, in their order.
	Steps map[string][]string
	Stuck []string
	// After is what each object says in the end, but for times.
	After map[string]string
	// Peaks are the most at any instant: workloads of a group with Pods that are not available, and such Pods of
	// each workload.
	Peaks map[string]int
	// Writes are those of all managers.
	Writes int
}

var errStopped = errors.New("the manager has stopped")

// Prior is a world before a change.
type Prior struct{ *simulation }

// Prepare brings about what there is before a change.
func Prepare(ctx context.Context, base []*unstructured.Unstructured, o Options) (Prior, error) {
	s, err := newSimulation(ctx, o)
	if err != nil {
		return Prior{}, err
	}
	return Prior{s}, s.prepare(ctx, base)
}

// Play makes a change under a fault, in a world of its own.
func (p Prior) Play(ctx context.Context, change []*unstructured.Unstructured, f Fault) (Played, error) {
	s, err := p.fork(ctx)
	if err != nil {
		return Played{}, err
	}
	if err := s.begin(ctx); err != nil {
		return Played{}, err
	}
	m := &mortal{simulation: s, fault: f}
	s.Client = &between{Client: s.Store, write: m.write, read: m.read}
	if err := m.replace(ctx); err != nil {
		return Played{}, err
	}
	watch := watcher{s.GroupOf, map[record.Key]down{}, map[string]int{}}
	s.Store.OnChange = func(before, after client.Object) {
		s.Changed(before, after)
		watch.note(before, after)
	}
	if err := errors.Join(s.apply(ctx, change), m.settle(ctx)); err != nil {
		return Played{}, err
	}
	return m.played(ctx, watch)
}

// mostDeaths bounds how many managers stop: what is tried again for ever is only found to be by one that goes on.
const mostDeaths = 100

// mortal is a simulation whose manager stops, and is replaced.
type mortal struct {
	*simulation

	fault   Fault
	mu      sync.Mutex
	writes  int
	stopped bool
	deaths  int
}

// settle is that of the simulation, with another manager whenever one has stopped.
func (m *mortal) settle(ctx context.Context) error {
	for {
		if err := m.Rest(ctx); err != nil {
			return err
		}
		if m.stopped {
			if err := m.replaceLater(ctx); err != nil {
				return err
			}
			continue
		}
		if err := m.Act(ctx); err != nil {
			return err
		}
		if len(m.waiting) == 0 && !m.isBusy() || m.isRepeated() || !m.Advance() {
			return nil
		}
	}
}

// replaceLater begins another manager once none has run for a while.
func (m *mortal) replaceLater(ctx context.Context) error {
	until := m.Now.Add(m.fault.Down)
	m.forgetLooks()
	for m.Now.Before(until) {
		if err := m.Rest(ctx); err != nil {
			return err
		}
		m.forgetLooks()
		if !m.Advance() || m.Now.After(until) {
			m.Now = until
		}
	}
	return m.replace(ctx)
}

// forgetLooks drops what the stopped manager would have looked at again.
func (m *mortal) forgetLooks() {
	isRing := func(e world.Request) bool { _, is := m.Actors[e.Actor].(*ring); return is }
	maps.DeleteFunc(m.Due, func(e world.Request, _ time.Time) bool { return isRing(e) })
	maps.DeleteFunc(m.Problems, func(e world.Request, _ error) bool { return isRing(e) })
}

// replace begins a manager that remembers nothing.
func (m *mortal) replace(ctx context.Context) error {
	m.stopped = false
	fresh, err := m.newRings(ctx)
	if err != nil {
		return err
	}
	for i, r := range m.rings {
		*r = *fresh[i]
	}
	m.repetition = repetition{}
	steps := m.Recorder
	m.Recorder = record.NewRecorder() // what exists is no step
	m.WakeAll()
	m.Recorder = steps
	return nil
}

// write makes a write, unless the manager has stopped or stops before it.
func (m *mortal) write(_ string, _ any, write func() error) error {
	m.mu.Lock()
	if m.stopped {
		m.mu.Unlock()
		return errStopped
	}
	m.writes++
	stops := m.fault.Write > 0 && (m.deaths == 0 && m.writes == m.fault.Write || m.deaths > 0 && m.deaths < mostDeaths && m.fault.Each)
	if stops && !m.fault.Answered && m.deaths%2 == 1 { // the write before which the last manager stopped: it comes to pass
		stops = false
		m.deaths++
	}
	m.stopped = m.stopped || stops
	if stops {
		m.deaths++
	}
	m.mu.Unlock()
	if stops && !m.fault.Answered {
		return errStopped
	}
	err := write()
	if stops {
		return errStopped
	}
	return err
}

func (m *mortal) read(read func() error) error {
	m.mu.Lock()
	stopped := m.stopped
	m.mu.Unlock()
	if stopped {
		return errStopped
	}
	return read()
}

func (m *mortal) played(ctx context.Context, w watcher) (Played, error) {
	result, err := m.result(ctx)
	p := Played{Steps: map[string][]string{}, After: map[string]string{}, Peaks: w.peaks, Writes: m.writes}
	for _, s := range result.Steps {
		key := s.Namespace + " " + s.Ring + " " + s.Object
		p.Steps[key] = append(p.Steps[key], s.String())
	}
	for _, w := range result.Stuck {
		p.Stuck = append(p.Stuck, fmt.Sprintf("%s %s %v", w.Namespace, w.Object, w.Reason))
	}
	slices.Sort(p.Stuck)
	for _, obj := range m.Store.All() {
		kind, _ := m.Store.GroupVersionKindFor(obj)
		switch kind.Kind {
		case "Pod", "ReplicaSet", "ControllerRevision":
		case "RolloutGate": // that of a plan has the name of an execution, which is another each time
			if g, ok := obj.DeepCopyObject().(*v1alpha1.RolloutGate); ok {
				g.Name = ""
				p.After[fmt.Sprintf("RolloutGate %s/%s %s %s of %s", g.Namespace, g.Spec.Gate, g.Spec.When, g.Spec.Stage, g.Spec.TargetRef.Name)] += saying(g)
			}
		default:
			p.After[kind.Kind+" "+client.ObjectKeyFromObject(obj).String()] = saying(obj)
		}
	}
	return p, err
}

// passing is what of a text is another each time: times, durations and random identities; whether something was seen
// unready in between; and inputs and marks, which save a restart some reads, and which an answer that was lost does not give.
var passing = regexp.MustCompile(`,"unready":true|,"inputs":"[0-9a-f]*"|,"got":\[[^]]*\]|\d{4}-\d\d-\d\dT[0-9:.]+Z|\d\d:\d\d:\d\d|(\d+h)?(\d+m)?\d+(\.\d+)?m?s\b|\d+h(\d+m)?\b|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// saying is what an object says, a line each field.
func saying(obj client.Object) string {
	raw, err := json.Marshal(obj)
	var of any
	if err != nil || json.Unmarshal(raw, &of) != nil {
		return ""
	}
	var lines []string
	addLines(&lines, "", of)
	return strings.Join(lines, "\n")
}

func addLines(lines *[]string, path string, at any) {
	switch at := at.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(at)) {
			switch key {
			case "attempts", "seen", "resourceVersion", "managedFields", "uid", "generation", "observedGeneration":
			default:
				addLines(lines, path+"."+key, at[key])
			}
		}
	case []any:
		for i, item := range at {
			addLines(lines, fmt.Sprintf("%s[%d]", path, i), item)
		}
	default:
		*lines = append(*lines, path+" "+passing.ReplaceAllString(fmt.Sprint(at), ""))
	}
}

// watcher sees every instant, and notes how much is not available.
type watcher struct {
	groupOf func(client.Object) string
	// down are how many Pods of workloads are not available.
	down  map[record.Key]down
	peaks map[string]int
}

type down struct {
	group string
	pods  int
}

func (w watcher) note(before, after client.Object) {
	obj := cmp.Or(after, before)
	switch obj.(type) {
	case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet:
	default:
		return
	}
	p := record.ProgressOf(obj)
	key, group := record.KeyOf(p.Kind, obj.GetNamespace(), obj.GetName()), w.groupOf(obj)
	w.down[key] = down{group, p.Missing()}
	if after == nil {
		delete(w.down, key)
	}
	w.peaks[p.Kind+" "+obj.GetName()] = max(w.peaks[p.Kind+" "+obj.GetName()], w.down[key].pods)
	workloads := 0
	for _, other := range w.down {
		if other.group == group && other.pods > 0 {
			workloads++
		}
	}
	w.peaks["group "+group] = max(w.peaks["group "+group], workloads)
}
