package simulate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/simulate/models"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
	"github.com/spillway-dev/spillway/internal/zones"
	"github.com/spillway-dev/spillway/rollout"
)

// Options are what a simulation takes for granted.
type Options struct {
	// Now is when the change is made.
	Now time.Time
	// Namespace is that of objects that name none.
	Namespace string
	// Readiness is how long Pods take.
	Readiness world.Readiness
	// Stop is how long Pods take until they are gone; nil is all of their grace period,
	// which is the worst case.
	Stop *time.Duration
	// Unprepared are those whose Pods fail when they are called to prepare for a downscale:
	// "statefulset/x" or "pod/x-0".
	Unprepared []string
	// Assumed is config that exists, unless it does already.
	Assumed []Assumption
	// Progress receives how far the change was played, often; it may be nil.
	Progress func(after time.Duration)
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

	// Gates is what becomes of the gates of a name, once a rollout has reached them. The
	// others wait.
	Gates map[string]v1alpha1.GateResult
	// OtherGates is what becomes of the gates that Gates does not name; they wait if it is empty.
	OtherGates v1alpha1.GateResult
}

// Result is what a change does.
type Result struct {
	// Before are those that waited already when the change was made.
	Before []record.Wait `json:"before,omitempty"`
	// Steps are in the order in which they are taken.
	Steps []record.Step `json:"steps"`
	// Waits are why there was no step at some moment, each when it was first said.
	Waits []record.Wait `json:"waits"`
	// Took is from the change until nothing happens any more.
	Took record.Offset `json:"took"`
	// Settled is true if everything came where it should be, but for what waited
	// already when the change was made.
	Settled bool `json:"settled"`
	// Stuck are the waits that nothing ends, or nothing within the time that was looked
	// ahead; those from before the change are among them.
	Stuck []record.Wait `json:"stuck,omitempty"`
	// Prepared are the StatefulSets of which Pods were called to prepare for a downscale.
	Prepared []Prepared `json:"prepared,omitempty"`
	// Assumed is the config that was taken to exist, so that whether it does is unknown.
	Assumed []Assumption `json:"assumed,omitempty"`
	// Risks are what could go wrong that did not here.
	Risks []Risk `json:"risks,omitempty"`
	// Unmet are the keys of [Readiness] that are nothing in this simulation.
	Unmet []string `json:"-"`
	// UnmetUnprepared are those that fail to prepare and are nothing in it either.
	UnmetUnprepared []string `json:"-"`
	// UnmetGates are the names in [Options.Gates] that no rollout has reached.
	UnmetGates []string `json:"-"`
	// Stages are those of modules that have begun, each when its first cluster was assigned the new revision.
	Stages []Stage `json:"-"`
	// Looks is how often a ring or a controller has looked at something, all in all.
	Looks int `json:"-"`
}

// Run brings about the objects of base, makes a change, and says what that does.
// Without a change it says what the first installation of base does.
func Run(ctx context.Context, base, change []*unstructured.Unstructured, o Options) (Result, error) {
	if len(change) == 0 {
		base, change = nil, base
	}
	ctx = logr.NewContext(ctx, logr.Discard()) // the result says all that the rings would
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
	result.Looks, result.UnmetGates = s.Looks+again.Looks, s.unmetGates()
	result.Unmet, result.UnmetUnprepared, err = s.unmet(ctx)
	return result, err
}

// mostSaid is how often the same wait is noted that ends and begins again. One for another
// attempt is noted once.
const mostSaid = 3

// before is how long before the change everything else was brought about: a month, so
// that all of it has soaked.
const before = 31 * 24 * time.Hour

// simulation is a world with the rings in it.
type simulation struct {
	*world.World

	options Options
	models  *models.Models
	rings   []*ring
	before  []record.Wait
	waits   []record.Wait
	assumed []Assumption
	// waiting are those of this moment.
	waiting []record.Wait
	// conflicts are the fields of the change that Spillway has set.
	conflicts []Risk
	// ends are when rollouts that waited did so no more, decided the gates that were.
	ends    map[Rollout]time.Time
	decided map[string]bool
	// passing is true while time alone ends some wait for replicas.
	passing bool
	// repetition ends what would be tried for ever.
	repetition repetition
}

func newSimulation(ctx context.Context, o Options) (*simulation, error) {
	o.Now = o.Now.Truncate(time.Second)
	on, err := world.ServerOf(o.Version, o.Present)
	if err != nil {
		return nil, err
	}
	w, err := world.New(ctx, o.Now.Add(-before), on)
	if err != nil {
		return nil, err
	}
	w.Within, w.Store.Installed = before, o.Installed
	unprepared := map[string]bool{}
	for _, of := range o.Unprepared {
		unprepared[of] = true
	}
	s := &simulation{World: w, options: o, ends: map[Rollout]time.Time{}, decided: map[string]bool{}, models: models.New(w, models.Options{Readiness: o.Readiness, Stop: o.Stop, Nodes: o.Nodes, Unprepared: unprepared})}
	return s, s.addActors(ctx)
}

// fork is the same world once more. What is done to one does nothing to the other.
func (s *simulation) fork(ctx context.Context) (*simulation, error) {
	f := s.asleep()
	if err := f.addActors(ctx); err != nil {
		return nil, err
	}
	f.WakeAll()
	return f, nil
}

// asleep is the same world once more, without actors.
func (s *simulation) asleep() *simulation {
	w := s.Fork()
	return &simulation{World: w, options: s.options, ends: map[Rollout]time.Time{}, decided: map[string]bool{}, models: s.models.Fork(w), waiting: s.waiting, before: s.before}
}

// addActors adds the models, and the rings as a manager that has just begun: they
// decide the same as one that has not.
func (s *simulation) addActors(ctx context.Context) error {
	w := s.World
	w.Add(s.models.Actors()...)
	if len(s.options.Present) == 0 {
		w.Add(s.models.Provisioner())
	}
	var err error
	if s.rings, err = s.newRings(ctx); err != nil {
		return err
	}
	for _, r := range s.rings {
		s.Add(r)
	}
	if len(s.options.Gates) > 0 || s.options.OtherGates != "" {
		s.Add(&decider{s})
	}
	return nil
}

// immediately has a status written in the pass that decides it: what waits is read there.
const immediately = -time.Nanosecond

// newRings are the rings of a manager that has just begun, and the guards that it serves.
func (s *simulation) newRings(ctx context.Context) ([]*ring, error) {
	w, c := s.World, s.options.Config
	c.Now, c.Zones = s.Clock, true
	z, err := newZones(ctx, w, zones.Options{Now: s.Clock, StatusDelay: immediately})
	if err != nil {
		return nil, err
	}
	f, err := newFleet(ctx, w, hub.Options{Now: s.Clock, StatusDelay: immediately})
	if err != nil {
		return nil, err
	}
	s.guard(ctx)
	return append([]*ring{newConfig(w, c, s.models.Pods()), z, s.newScaling(), newPlans(w, plans.Options{Now: s.Clock})}, f...), nil
}

// prepare brings about what there is before the change: what was seen in a cluster as
// it is, and what stands in manifests with time to settle.
func (s *simulation) prepare(ctx context.Context, base []*unstructured.Unstructured) error {
	s.Now = s.options.Now
	if err := s.models.Seed(s.options.Present); err != nil {
		return err
	}
	if err := s.assume(ctx); err != nil {
		return err
	}
	if len(s.options.Present) > 0 {
		return s.Act(ctx)
	}
	s.Now = s.options.Now.Add(-before)
	return s.bringAbout(ctx, base)
}

// change applies objects, and lets everybody see to them.
func (s *simulation) change(ctx context.Context, objects []*unstructured.Unstructured) error {
	if err := s.apply(ctx, objects); err != nil {
		return err
	}
	return s.settle(ctx)
}

// begin makes the moment of the change the one from which on steps are recorded.
func (s *simulation) begin(ctx context.Context) error {
	if s.Now.Before(s.options.Now) {
		s.Now = s.options.Now
	}
	s.Within, s.Begun = cmp.Or(s.options.Within, world.Horizon), true
	unwhole, err := record.Unwhole(ctx, s.Store, "", s.waiting)
	if err != nil {
		return err
	}
	s.Started, s.Acted, s.before, s.waits = s.Now, s.Now, slices.Concat(s.waiting, unwhole), nil
	s.conflicts = nil
	clear(s.ends)
	clear(s.models.Endpoints.Called)
	s.Recorder.Forget(s.Store.Objects(&corev1.Pod{}, ""))
	return nil
}

// offset is a moment as time since the change.
func (s *simulation) offset(at time.Time) record.Offset { return record.Offset(at.Sub(s.Started)) }

// settle lets time pass until nothing happens any more.
func (s *simulation) settle(ctx context.Context) error {
	for {
		if err := s.Rest(ctx); err != nil {
			return err
		}
		if err := s.Act(ctx); err != nil {
			return err
		}
		if s.Begun && s.options.Progress != nil {
			s.options.Progress(s.Now.Sub(s.Started))
		}
		if len(s.waiting) == 0 && !s.isBusy() || s.isRepeated() || !s.Advance() {
			return nil
		}
	}
}

// isBusy is true while an actor other than a ring must act again.
func (s *simulation) isBusy() bool {
	for e := range s.Due {
		if _, ok := s.Actors[e.Actor].(*ring); !ok {
			return true
		}
	}
	return false
}

// Act notes what waits at this moment, and why, if that has not been said yet.
func (s *simulation) Act(ctx context.Context) error {
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
		s.waiting[i].At = s.offset(s.Now)
		if j := slices.IndexFunc(known, s.waiting[i].SameAs); j >= 0 {
			s.waiting[i].At = known[j].At
			continue
		}
		if said := countOf(s.waits, s.waiting[i].RepeatedBy); said < mostSaid && (said == 0 || s.waiting[i].Reason != rollout.ReasonRetry) {
			s.waits = append(s.waits, s.waiting[i])
		}
	}
	s.noteEnds(known)
	return nil
}

// countOf is how many waits are alike.
func countOf(waits []record.Wait, same func(record.Wait) bool) (n int) {
	for i := range waits {
		if same(waits[i]) {
			n++
		}
	}
	return n
}

func (s *simulation) result(ctx context.Context) (Result, error) {
	unwhole, err := record.Unwhole(ctx, s.Store, "", s.waiting)
	for i := range unwhole {
		unwhole[i].At = s.offset(s.Acted)
	}
	for i := range s.waiting {
		if s.Beyond {
			s.waiting[i].Next = s.nextLook(&s.waiting[i])
		}
	}
	r := Result{
		Assumed: s.assumed, Before: s.before, Steps: s.Recorder.Steps(), Waits: s.waits, Took: s.offset(s.Acted),
		Stuck: slices.Concat(s.waiting, unwhole, s.failures()),
	}
	if err != nil {
		return r, err
	}
	r.Prepared, r.Stages = s.prepared(), s.stages()
	r.Settled = !slices.ContainsFunc(r.Stuck, func(w record.Wait) bool { return !r.WaitedBefore(w) })
	return r, nil
}

// failures are the looks that failed whenever they were tried.
func (s *simulation) failures() []record.Wait {
	var failures []record.Wait
	for e, err := range s.Problems {
		failures = append(failures, record.Wait{
			At: s.offset(s.Acted), Namespace: e.Key.Namespace, Object: cmp.Or(e.Key.Name, "all workloads"), Sentence: "cannot continue: " + err.Error(),
		})
	}
	slices.SortFunc(failures, func(a, b record.Wait) int {
		return cmp.Compare(a.Namespace+a.Object+a.Sentence, b.Namespace+b.Object+b.Sentence)
	})
	return failures
}

// WaitedBefore is true of what waited in the same way when the change was made.
func (r *Result) WaitedBefore(w record.Wait) bool { return slices.ContainsFunc(r.Before, w.SameAs) }

// nextLook is when a ring looks again at what waits, zero if it does not.
func (s *simulation) nextLook(wait *record.Wait) time.Time {
	var next time.Time
	for e, at := range s.Due {
		if r, ok := s.Actors[e.Actor].(*ring); ok && r.name == wait.Ring && concerns(e.Key, wait) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// concerns is true of a look at what waits. The config ring decides everything together.
func concerns(key types.NamespacedName, wait *record.Wait) bool {
	return key.Name == "" || key.Namespace == wait.Namespace && strings.HasSuffix(wait.Object, "/"+key.Name)
}
