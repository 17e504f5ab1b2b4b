package world

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/simulate/apiserver"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

const (
	// looksParallel bounds how often all actors together may look before the clock
	// moves, for each object that there is: one that never rests is a finding.
	looksParallel = 200
	// Horizon is how far the clock may go, unless something else is said: a week and a day, so that each window that
	// opens once a week has opened.
	Horizon = 8 * 24 * time.Hour
	// retries is how often a request that fails is tried again, after the back-off that
	// the rings have.
	retries = 12
)

// Actor reads objects and writes: a ring, a controller of Kubernetes,
// the kubelets.
type Actor interface {
	// Wakes are what is to be looked at after an object has changed; after is nil if
	// it is gone.
	Wakes(before, after client.Object) []types.NamespacedName
	// Act does what is to be done now, and says after how long to look again though
	// nothing changes; zero is never.
	Act(ctx context.Context, key types.NamespacedName) (time.Duration, error)
}

// World is the simulated cluster.
type World struct {
	Store *apiserver.Store
	// Client is by which the rings read and write, the store itself unless a test lies between.
	Client client.Client
	Server Server
	Now    time.Time
	Actors []Actor
	// dirty are what each actor has to look at now, due what later.
	dirty  []*queue
	Due    map[Request]time.Time
	failed map[Request]int
	// Problems are looks that fail and fail again.
	Problems map[Request]error
	// Broken is what is never ready, if anything is.
	Broken record.Key
	// Faults are what keeps units from being ready, until it is taken away.
	Faults   map[record.Key]Fault
	Recorder *record.Recorder
	// Groups are those of the StatefulSets.
	Groups map[types.NamespacedName]string
	// Instances are those that there are; modules as well, by their kind.
	Instances map[types.NamespacedName]bool
	Modules   map[string]map[types.NamespacedName]bool
	// Gone are the objects that were deleted, except Pods, which own nothing.
	Gone    map[types.UID]bool
	Started time.Time
	// Acted is when something changed last.
	Acted time.Time
	// Changes counts the changes of objects other than Instances and RolloutGroups, which
	// note each attempt.
	Changes int
	// Begun is true once the change is made.
	Begun bool
	// Within is how far the clock may go.
	Within time.Duration
	// Beyond is true once the next moment is later than that.
	Beyond bool
	// Met are those of which was asked how long they take: "statefulset/x", "statefulset/x@new".
	Met map[string]bool
	// ran are the revisions that are known to become ready: "statefulset/x@ID".
	ran map[string]bool
	// Looks is how often anybody has looked at anything.
	Looks int
	// Acting is the actor that acts now, nil if none does. After is called once it has; it may be nil.
	Acting Actor
	After  func()
}

// Request is what an actor has to look at.
type Request struct {
	Actor int
	Key   types.NamespacedName
}

// New returns a world without objects and without actors.
func New(ctx context.Context, start time.Time, on Server) (*World, error) {
	kinds, err := kube.NewScheme()
	if err != nil {
		return nil, err
	}
	w := worldAt(start)
	w.Server = on
	w.on(apiserver.New(kinds, w.Clock))
	w.Store.DropsMaxUnavailable = !on.MaxUnavailable
	if err := w.Store.IndexField(ctx, &corev1.Pod{}, OwnerIndex, ownerOf); err != nil {
		return nil, err
	}
	return w, nil
}

// Fork is a world at the same moment with the same objects, without actors.
func (w *World) Fork() *World {
	f := worldAt(w.Now)
	f.Server, f.Started, f.Gone, f.ran = w.Server, w.Started, maps.Clone(w.Gone), maps.Clone(w.ran)
	f.Faults = maps.Clone(w.Faults)
	f.on(w.Store.Clone(f.Clock))
	return f
}

// GoOn lets a fork go on where the world that it was made of has got to: what is due there is due
// here, and nothing else. The actors must be the same ones.
func (w *World) GoOn(from *World) {
	w.Acted, w.Changes, w.Begun, w.Within = from.Acted, from.Changes, from.Begun, from.Within
	w.Groups, w.Instances = maps.Clone(from.Groups), maps.Clone(from.Instances)
	for kind, of := range from.Modules {
		w.Modules[kind] = maps.Clone(of)
	}
	w.Due, w.failed, w.Problems = maps.Clone(from.Due), maps.Clone(from.failed), maps.Clone(from.Problems)
	w.Recorder = from.Recorder.Clone()
}

// Sleep takes the actors away, and all that watches.
func (w *World) Sleep() {
	w.Actors, w.dirty, w.After = nil, nil, nil
	w.Store.OnChange, w.Store.Admit = func(_, _ client.Object) {}, nil
}

// Restart lets some actors look at everything.
func (w *World) Restart(is func(Actor) bool) {
	for i, a := range w.Actors {
		if !is(a) {
			continue
		}
		for _, obj := range w.Store.All() {
			for _, key := range a.Wakes(nil, obj) {
				w.dirty[i].add(key)
			}
		}
	}
}

// Forgive forgets which looks have failed: what was put off for that is due.
func (w *World) Forgive() {
	for e := range w.failed {
		delete(w.Due, e)
		w.dirty[e.Actor].add(e.Key)
	}
	clear(w.failed)
	clear(w.Problems)
}

func worldAt(start time.Time) *World {
	return &World{
		Now: start, Started: start, Within: Horizon, Recorder: record.NewRecorder(),
		Groups: map[types.NamespacedName]string{}, Instances: map[types.NamespacedName]bool{},
		Modules: map[string]map[types.NamespacedName]bool{model.KindModule: {}, model.KindBootstrap: {}},
		Met:     map[string]bool{}, ran: map[string]bool{}, Gone: map[types.UID]bool{}, Faults: map[record.Key]Fault{},
		Due: map[Request]time.Time{}, failed: map[Request]int{}, Problems: map[Request]error{},
	}
}

func (w *World) on(s *apiserver.Store) {
	w.Store, w.Client = s, s
	w.Store.OnChange = w.Changed
}

// WakeAll lets all actors act on everything.
func (w *World) WakeAll() {
	for _, obj := range w.Store.All() {
		w.Changed(nil, obj)
	}
}

// OwnerIndex finds the Pods of what controls them, by its UID.
const OwnerIndex = "owner"

func ownerOf(obj client.Object) []string {
	if owner := metav1.GetControllerOfNoCopy(obj); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// Clock returns the present of the world.
func (w *World) Clock() time.Time { return w.Now }

// Changed tells the actors of a write, and the recorder.
func (w *World) Changed(before, after client.Object) {
	switch o := after.(type) {
	case *appsv1.StatefulSet:
		w.Groups[client.ObjectKeyFromObject(o)] = vocabulary.GroupOf(o.Labels, o.Annotations)
	case *v1beta1.Instance:
		w.Instances[client.ObjectKeyFromObject(o)] = true
	case *fleetv1.Module:
		w.Modules[model.KindModule][client.ObjectKeyFromObject(o)] = true
	case *fleetv1.BootstrapModule:
		w.Modules[model.KindBootstrap][client.ObjectKeyFromObject(o)] = true
	}
	switch cmp.Or(after, before).(type) {
	case *v1beta1.Instance, *v1alpha1.RolloutGroup:
	default:
		w.Changes++
	}
	if _, isPod := before.(*corev1.Pod); after == nil && !isPod {
		w.Gone[before.GetUID()] = true
	}
	for i, a := range w.Actors {
		for _, key := range a.Wakes(before, after) {
			w.dirty[i].add(key)
		}
	}
	if !isVerdict(before, after) {
		w.Acted = w.Now
	}
	w.Recorder.See(w.Now.Sub(w.Started), before, after)
}

// isVerdict is true if nothing has changed about a Deployment but what is said of it:
// that one which stands still is too late is no part of what a change does.
func isVerdict(before, after client.Object) bool {
	was, _ := before.(*appsv1.Deployment)
	is, ok := after.(*appsv1.Deployment)
	if !ok || was == nil {
		return false
	}
	same := *was
	same.ResourceVersion, same.Status.Conditions = is.ResourceVersion, is.Status.Conditions
	return equality.Semantic.DeepEqual(&same, is)
}

// UnsettledError reports that something is looked at for ever, without time going on.
type UnsettledError struct{ Key types.NamespacedName }

// Error implements error.
func (e *UnsettledError) Error() string {
	return fmt.Sprintf("it does not settle: %s is reconciled repeatedly", e.Key)
}

// Rest lets all actors act until none has anything to do at this moment.
func (w *World) Rest(ctx context.Context) error {
	for began := w.Looks; ; {
		e, ok := w.next()
		if !ok {
			return nil
		}
		if w.Looks++; w.Looks-began > looksParallel*(1+len(w.dirty)+w.Store.Len()) {
			return &UnsettledError{e.Key}
		}
		w.run(ctx, e)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("simulate: %w", err)
		}
	}
}

func (w *World) run(ctx context.Context, e Request) {
	delete(w.Due, e)
	w.Recorder.Begin()
	w.Acting = w.Actors[e.Actor]
	again, err := w.Acting.Act(ctx, e.Key)
	if w.After != nil {
		w.After()
	}
	w.Acting = nil
	if err != nil {
		w.fail(e, err)
		return
	}
	delete(w.failed, e)
	delete(w.Problems, e)
	if again > 0 {
		w.Due[e] = w.Now.Add(again)
	}
}

// fail puts a look off that has failed.
func (w *World) fail(e Request, err error) {
	w.Problems[e] = err
	if w.failed[e] < retries {
		w.Due[e] = w.Now.Add(ring.Passes().After(w.failed[e]))
	}
	w.failed[e]++
}

// Advance moves the clock to the next moment at which an actor must act; false if
// there is none before the horizon.
func (w *World) Advance() bool {
	var next time.Time
	for _, at := range w.Due {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	w.Beyond = next.After(w.Started.Add(w.Within))
	if next.IsZero() || w.Beyond {
		return false
	}
	if next.After(w.Now) {
		w.Now = next
	}
	for e, at := range w.Due {
		if !at.After(w.Now) {
			w.dirty[e.Actor].add(e.Key)
		}
	}
	return true
}

// Add adds an actor. Those that were added before it act before it.
func (w *World) Add(actors ...Actor) {
	for _, a := range actors {
		w.Actors = append(w.Actors, a)
		w.dirty = append(w.dirty, &queue{has: map[types.NamespacedName]bool{}})
	}
}

// next is what is to be looked at next: by actor, then by name.
func (w *World) next() (Request, bool) {
	for i, q := range w.dirty {
		if key, ok := q.next(); ok {
			return Request{i, key}, true
		}
	}
	return Request{}, false
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// First is the kind of the key that stands for the first Pod that is made.
const First = "first"

// Fault is what keeps a unit from being ready.
type Fault string

// The faults.
const (
	// Slow is that of a unit that is not ready yet, without a word why.
	Slow Fault = "slow"
	// Crashing is that of a unit whose containers fail again and again.
	Crashing Fault = "crashing"
)

// Wake has the actors look at an object once more, as after a change.
func (w *World) Wake(obj client.Object) {
	for i, a := range w.Actors {
		for _, key := range a.Wakes(obj, obj) {
			w.dirty[i].add(key)
		}
	}
}

// IsBroken reports whether something is never ready. If that is to be the first, it is this one.
func (w *World) IsBroken(kind, namespace, name string) bool {
	asked := record.KeyOf(kind, namespace, name)
	if w.Faults[asked] != "" {
		return true
	}
	if w.Broken.Kind == First {
		w.Broken = asked
	}
	return w.Broken != record.Key{} && w.Broken == asked
}

// GroupOf is the group of a StatefulSet, or of the one that a Pod belongs to.
func (w *World) GroupOf(obj client.Object) string {
	switch o := obj.(type) {
	case *appsv1.StatefulSet:
		return vocabulary.GroupOf(o.Labels, o.Annotations)
	case *corev1.Pod:
		for _, key := range record.SetsOf(o) {
			return w.Groups[key]
		}
	}
	return ""
}
