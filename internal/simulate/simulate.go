package simulate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/zones"
)

// Options are what a simulation takes for granted.
type Options struct {
	// Now is when the change is made.
	Now time.Time
	// Namespace is that of objects that name none.
	Namespace string
	// Readiness is how long Pods take.
	Readiness Readiness
	// Stop is how long Pods take until they are gone; nil is all of their grace period,
	// which is the worst case.
	Stop *time.Duration
	// Present is what there is in a cluster, by [Present]; base is applied over it.
	Present []client.Object
	// Within is how far to look ahead; zero is [Horizon].
	Within time.Duration
	// Nodes is on how many nodes a DaemonSet runs.
	Nodes int
	// Installed knows the kinds of a cluster; nil if there is none.
	Installed apimeta.RESTMapper
	// Version is that of Kubernetes, such as v1.36.2; the newest that is known if empty.
	Version string
	// Config are the options of the config ring. Its clock is set to that of the
	// simulation.
	Config config.Options
}

// Result is what a change does.
type Result struct {
	// Before are those that waited already when the change was made.
	Before []Wait `json:"before,omitempty"`
	// Steps are in the order in which they are taken.
	Steps []Step `json:"steps"`
	// Waits are why there was no step at some moment, each when it was first said.
	Waits []Wait `json:"waits"`
	// Took is from the change until nothing happens any more.
	Took time.Duration `json:"took"`
	// Settled is true if everything came where it should be, but for what waited
	// already when the change was made.
	Settled bool `json:"settled"`
	// Stuck are the waits that nothing ends, or nothing within the time that was looked
	// ahead; those from before the change are among them.
	Stuck []Wait `json:"stuck,omitempty"`
	// Risks are what could go wrong that did not here.
	Risks []Risk `json:"risks,omitempty"`
	// Unmet are the keys of [Readiness] that are nothing in this simulation.
	Unmet []string `json:"-"`
	// Looks is how often a ring or a controller has looked at something, all in all.
	Looks int `json:"-"`
}

// Run brings about the objects of base, makes a change, and says what that does.
// Without a change it says what the first installation of base does.
func Run(ctx context.Context, base, change []*unstructured.Unstructured, o Options) (Result, error) {
	if len(change) == 0 {
		base, change = nil, base
	}
	s, err := newSimulation(ctx, o)
	if err != nil {
		return Result{}, err
	}
	if err := s.prepare(ctx, base); err != nil {
		return Result{}, fmt.Errorf("before the change: %w", err)
	}
	again, err := s.fork(ctx)
	if err != nil {
		return Result{}, err
	}
	if err := s.begin(ctx); err != nil {
		return Result{}, err
	}
	if err := s.change(ctx, change); err != nil {
		return Result{}, err
	}
	result, err := s.result(ctx)
	if err != nil {
		return Result{}, err
	}
	result.Risks, err = s.risks(ctx, again, change, &result)
	if err != nil {
		return Result{}, err
	}
	result.Looks = s.looks + again.looks
	result.Unmet, err = s.unmet(ctx)
	return result, err
}

// before is how long before the change everything else was brought about: a month, so
// that all of it has soaked.
const before = 31 * 24 * time.Hour

// simulation is a world with the rings in it.
type simulation struct {
	*world

	options Options
	models  models
	rings   []*ring
	before  []Wait
	waits   []Wait
	// waiting are those of this moment.
	waiting []Wait
	// conflicts are the fields of the change that Spillway has set.
	conflicts []Risk
}

// models are what the controllers of Kubernetes remember.
type models struct {
	sets *statefulSets
	run  *runner
}

func newSimulation(ctx context.Context, o Options) (*simulation, error) {
	o.Now = o.Now.Truncate(time.Second)
	on, err := serverOf(o.Version, o.Present)
	if err != nil {
		return nil, err
	}
	w, err := newWorld(ctx, o.Now.Add(-before), on)
	if err != nil {
		return nil, err
	}
	w.within, w.store.Installed = before, o.Installed
	s := &simulation{world: w, options: o, models: models{
		sets: &statefulSets{world: w, templates: map[string]corev1.PodTemplateSpec{}, seen: map[seenTemplate]string{}},
		run:  &runner{world: w, readiness: o.Readiness, stop: o.Stop, sets: map[types.UID]*replicaSet{}, lacking: map[lacking]bool{}},
	}}
	return s, s.addActors(ctx)
}

// addActors adds the models, and the rings as a manager that has just begun: they
// decide the same as one that has not.
func (s *simulation) addActors(ctx context.Context) error {
	w, ready := s.world, s.options.Readiness
	w.add(
		autoscalers{w, map[types.NamespacedName]scaling{}},
		s.models.sets, deployments{s.models.run}, daemonSets{s.models.run, s.options.Nodes}, providers{w},
		&jobs{world: w, readiness: ready, lacking: map[types.NamespacedName]bool{}},
		&collector{world: w, waiting: map[types.UID]bool{}},
		&clusters{world: w, readiness: ready},
		&kubelets{world: w, readiness: ready, stop: s.options.Stop, lacking: map[types.NamespacedName]bool{}, started: map[types.UID]time.Time{}},
	)
	if len(s.options.Present) == 0 {
		w.add(clusterAPI{w})
	}
	c := s.options.Config
	c.Now, c.Zones = s.clock, true
	z, err := newZones(ctx, w, zones.Options{Now: s.clock})
	if err != nil {
		return err
	}
	f, err := newFleet(ctx, w, hub.Options{Now: s.clock})
	if err != nil {
		return err
	}
	s.rings = append([]*ring{newConfig(w, c), z, newPlans(w, plans.Options{Now: s.clock})}, f...)
	for _, r := range s.rings {
		s.add(r)
	}
	return nil
}

// fork is the same world once more. What is done to one does nothing to the other.
func (s *simulation) fork(ctx context.Context) (*simulation, error) {
	w := s.world.fork()
	f := &simulation{world: w, options: s.options, waiting: s.waiting}
	f.models.sets = &statefulSets{world: w, templates: maps.Clone(s.models.sets.templates), seen: s.models.sets.seen}
	f.models.run = &runner{
		world: w, readiness: s.options.Readiness, stop: s.options.Stop, sets: map[types.UID]*replicaSet{}, lacking: map[lacking]bool{},
	}
	for uid, set := range s.models.run.sets {
		f.models.run.sets[uid] = &replicaSet{all: slices.Clone(set.all), leaving: slices.Clone(set.leaving), progressed: set.progressed, nodes: set.nodes}
	}
	if err := f.addActors(ctx); err != nil {
		return nil, err
	}
	f.wakeAll()
	return f, nil
}

// prepare brings about what there is before the change: what was seen in a cluster as
// it is, and what stands in manifests with time to settle.
func (s *simulation) prepare(ctx context.Context, base []*unstructured.Unstructured) error {
	if err := s.seed(s.options.Present); err != nil {
		return err
	}
	if len(s.options.Present) > 0 {
		return s.look(ctx)
	}
	s.now = s.options.Now.Add(-before)
	return s.bringAbout(ctx, base)
}

// change applies objects, and lets everybody see to them.
func (s *simulation) change(ctx context.Context, objects []*unstructured.Unstructured) error {
	if err := s.apply(ctx, objects); err != nil {
		return err
	}
	return s.settle(ctx)
}

// begin makes the moment of the change the one from which on is told what happens.
func (s *simulation) begin(ctx context.Context) error {
	if s.now.Before(s.options.Now) {
		s.now = s.options.Now
	}
	s.within, s.begun = cmp.Or(s.options.Within, Horizon), true
	unwhole, err := Unwhole(ctx, s.store, "", s.waiting)
	s.started, s.acted, s.before, s.waits = s.now, s.now, slices.Concat(s.waiting, unwhole), nil
	s.conflicts = nil
	s.recorder.Forget(s.store.Objects(&corev1.Pod{}, ""))
	return err
}

// settle lets time pass until nothing happens any more.
func (s *simulation) settle(ctx context.Context) error {
	for {
		if err := s.rest(ctx); err != nil {
			return err
		}
		if err := s.look(ctx); err != nil {
			return err
		}
		if len(s.waiting) == 0 && !s.isBusy() || !s.advance() {
			return nil
		}
	}
}

// isBusy is true while somebody but a ring has to look again.
func (s *simulation) isBusy() bool {
	for e := range s.due {
		if _, ok := s.actors[e.actor].(*ring); !ok {
			return true
		}
	}
	return false
}

// look notes what waits at this moment, and why, if that has not been said yet.
func (s *simulation) look(ctx context.Context) error {
	known := s.waiting
	s.waiting = nil
	for _, r := range s.rings {
		waits, err := r.waits(ctx)
		if err != nil {
			return err
		}
		s.waiting = append(s.waiting, waits...)
	}
	for i := range s.waiting {
		s.waiting[i].At = s.now.Sub(s.started)
		if j := slices.IndexFunc(known, s.waiting[i].sameAs); j >= 0 {
			s.waiting[i].At = known[j].At
			continue
		}
		s.waits = append(s.waits, s.waiting[i])
	}
	return nil
}

func (w Wait) sameAs(other Wait) bool {
	return w.Namespace == other.Namespace && w.Object == other.Object && w.Sentence == other.Sentence
}

func (s *simulation) result(ctx context.Context) (Result, error) {
	unwhole, err := Unwhole(ctx, s.store, "", s.waiting)
	for i := range unwhole {
		unwhole[i].At = s.acted.Sub(s.started)
	}
	for i := range s.waiting {
		if s.beyond {
			s.waiting[i].Next = s.nextLook(&s.waiting[i])
		}
	}
	r := Result{
		Before: s.before, Steps: s.recorder.Steps(), Waits: s.waits, Took: s.acted.Sub(s.started),
		Stuck: slices.Concat(s.waiting, unwhole, s.failures()),
	}
	r.Settled = !slices.ContainsFunc(r.Stuck, func(w Wait) bool { return !r.WaitedBefore(w) })
	return r, err
}

// failures are the looks that failed whenever they were tried.
func (s *simulation) failures() []Wait {
	var failures []Wait
	for e, err := range s.problems {
		failures = append(failures, Wait{
			At: s.acted.Sub(s.started), Namespace: e.key.Namespace, Object: cmp.Or(e.key.Name, "all workloads"), Sentence: "cannot go on: " + err.Error(),
		})
	}
	slices.SortFunc(failures, func(a, b Wait) int {
		return cmp.Compare(a.Namespace+a.Object+a.Sentence, b.Namespace+b.Object+b.Sentence)
	})
	return failures
}

// WaitedBefore is true of what waited in the same way when the change was made.
func (r *Result) WaitedBefore(w Wait) bool { return slices.ContainsFunc(r.Before, w.sameAs) }
