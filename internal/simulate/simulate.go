package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
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
	// Within is how far to look ahead; zero is as far as it goes.
	Within time.Duration
	// Nodes is on how many nodes a DaemonSet runs.
	Nodes int
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
	// Settled is true if everything came where it should be.
	Settled bool `json:"settled"`
	// Stuck are the waits that nothing ends.
	Stuck []Wait `json:"stuck,omitempty"`
}

// Run brings about the objects of base, makes a change, and says what that does.
// Without a change it says what the first installation of base does.
func Run(ctx context.Context, base, change []*unstructured.Unstructured, o Options) (Result, error) {
	s, err := newSimulation(ctx, o)
	if err != nil {
		return Result{}, err
	}
	if len(change) == 0 {
		base, change = nil, base
	}
	if err := s.apply(ctx, base); err != nil {
		return Result{}, err
	}
	if err := s.settle(ctx); err != nil {
		return Result{}, fmt.Errorf("before the change: %w", err)
	}
	s.begin()
	if err := s.apply(ctx, change); err != nil {
		return Result{}, err
	}
	if err := s.settle(ctx); err != nil {
		return Result{}, err
	}
	return s.result(), nil
}

// simulation is a world with the rings in it.
type simulation struct {
	*world

	options Options
	rings   []*ring
	before  []Wait
	waits   []Wait
	// waiting are those of this moment, last is when something happened last.
	waiting []Wait
	last    time.Time
}

func newSimulation(ctx context.Context, o Options) (*simulation, error) {
	w, err := newWorld(o.Now.Truncate(time.Second))
	if err != nil {
		return nil, err
	}
	w.recorder = NewRecorder()
	if o.Within > 0 {
		w.within = o.Within
	}
	s := &simulation{world: w, options: o}
	run := &runner{world: w, readiness: o.Readiness, sets: map[types.UID]*replicaSet{}, lacking: map[lacking]bool{}}
	w.add(
		&statefulSets{world: w, templates: map[string]corev1.PodTemplateSpec{}, seen: map[seenTemplate]string{}},
		deployments{run}, daemonSets{run, o.Nodes}, providers{w},
		&jobs{world: w, readiness: o.Readiness, lacking: map[types.NamespacedName]bool{}},
		&collector{world: w, orphans: map[types.NamespacedName]types.UID{}},
		&kubelets{world: w, readiness: o.Readiness, lacking: map[types.NamespacedName]bool{}},
	)
	return s, s.addRings(ctx)
}

func (s *simulation) addRings(ctx context.Context) error {
	c := s.options.Config
	c.Now, c.Zones = s.clock, true
	z, err := newZones(ctx, s.world, zones.Options{Now: s.clock})
	if err != nil {
		return err
	}
	s.rings = []*ring{newConfig(s.world, c), z, newPlans(s.world, plans.Options{Now: s.clock})}
	for _, r := range s.rings {
		s.add(r)
	}
	return nil
}

// fieldOwner is whoever applies the manifests.
const fieldOwner = "user"

// apply applies objects as a user does who owns them alone.
func (s *simulation) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, obj := range objects {
		u := obj.DeepCopy()
		if namespaced, err := s.store.IsObjectNamespaced(u); err != nil || namespaced {
			u.SetNamespace(orDefault(u.GetNamespace(), s.options.Namespace))
		}
		err := s.store.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(fieldOwner), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}

func orDefault(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// begin makes this moment the one from which on is told what happens.
func (s *simulation) begin() {
	s.started, s.last, s.before, s.waits = s.now, s.now, s.waiting, nil
	s.recorder.Forget(s.store.Objects(&corev1.Pod{}, ""))
}

// settle lets time pass until nothing happens any more.
func (s *simulation) settle(ctx context.Context) error {
	for {
		before := s.store.Version()
		if err := s.rest(ctx); err != nil {
			return err
		}
		if s.store.Version() != before {
			s.last = s.now
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
	before := s.waiting
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
		if j := slices.IndexFunc(before, s.waiting[i].sameAs); j >= 0 {
			s.waiting[i].At = before[j].At
			continue
		}
		s.waits = append(s.waits, s.waiting[i])
	}
	return nil
}

func (w Wait) sameAs(other Wait) bool {
	return w.Namespace == other.Namespace && w.Object == other.Object && w.Sentence == other.Sentence
}

func (s *simulation) result() Result {
	return Result{
		Before: s.before, Steps: s.recorder.Steps(), Waits: s.waits, Took: s.last.Sub(s.started),
		Settled: len(s.waiting) == 0 && len(s.problems) == 0 && s.isWhole(), Stuck: s.waiting,
	}
}

// isWhole is true if all workloads have what they ask for.
func (s *simulation) isWhole() bool {
	for _, obj := range s.store.Objects(&appsv1.Deployment{}, "") {
		if d, ok := obj.(*appsv1.Deployment); ok && d.Status.AvailableReplicas < *d.Spec.Replicas {
			return false
		}
	}
	return true
}
