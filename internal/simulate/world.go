package simulate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/simulate/apiserver"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

const (
	// looksParallel bounds how often all actors together may look before the clock
	// moves, for each object that there is: one that never rests is a finding.
	looksParallel = 200
	// Horizon is how far the clock may go, unless something else is said: a week and a day, so that each window that
	// opens once a week has opened.
	Horizon = 8 * 24 * time.Hour
	// A look that fails is taken again after retryFirst, then after twice as long, and
	// no more after retries.
	retryFirst = 500 * time.Millisecond
	retries    = 12
)

// actor is whoever looks at objects and writes: a ring, a controller of Kubernetes,
// the kubelets.
type actor interface {
	// wakes are what is to be looked at after an object has changed; after is nil if
	// it is gone.
	wakes(before, after client.Object) []types.NamespacedName
	// look does what is to be done now, and says after how long to look again though
	// nothing changes; zero is never.
	look(ctx context.Context, key types.NamespacedName) (time.Duration, error)
}

// world is the simulated cluster.
type world struct {
	store  *apiserver.Store
	server server
	now    time.Time
	actors []actor
	// dirty are what each actor has to look at now, due what later.
	dirty  []map[types.NamespacedName]bool
	due    map[errand]time.Time
	failed map[errand]int
	// problems are looks that fail and fail again.
	problems map[errand]error
	// broken is what is never ready, if anything is.
	broken   unit
	recorder *Recorder
	// groups are those of the StatefulSets.
	groups map[types.NamespacedName]string
	// instances are those that there are; modules as well, by their kind.
	instances map[types.NamespacedName]bool
	modules   map[string]map[types.NamespacedName]bool
	// gone are the objects that were there, but for Pods, which own nothing.
	gone    map[types.UID]bool
	started time.Time
	// acted is when something changed last.
	acted time.Time
	// begun is true once the change is made.
	begun bool
	// within is how far the clock may go.
	within time.Duration
	// beyond is true once somebody would look again only later than that.
	beyond bool
	// met are those of which somebody has asked how long they take: "statefulset/x".
	met map[string]bool
	// looks is how often anybody has looked at anything.
	looks int
}

// errand is what an actor has to look at.
type errand struct {
	actor int
	key   types.NamespacedName
}

func newWorld(ctx context.Context, start time.Time, on server) (*world, error) {
	kinds, err := kube.NewScheme()
	if err != nil {
		return nil, err
	}
	w := worldAt(start)
	w.server = on
	w.on(apiserver.New(kinds, w.clock))
	w.store.DropsMaxUnavailable = !on.maxUnavailable
	if err := w.store.IndexField(ctx, &corev1.Pod{}, ownerIndex, ownerOf); err != nil {
		return nil, err
	}
	return w, nil
}

func worldAt(start time.Time) *world {
	return &world{
		now: start, started: start, within: Horizon, recorder: NewRecorder(),
		groups: map[types.NamespacedName]string{}, instances: map[types.NamespacedName]bool{},
		modules: map[string]map[types.NamespacedName]bool{model.KindModule: {}, model.KindBootstrap: {}},
		met:     map[string]bool{}, gone: map[types.UID]bool{},
		due: map[errand]time.Time{}, failed: map[errand]int{}, problems: map[errand]error{},
	}
}

func (w *world) on(s *apiserver.Store) {
	w.store = s
	w.store.OnChange = w.changed
}

// fork is a world at the same moment with the same objects, in which nobody is.
func (w *world) fork() *world {
	f := worldAt(w.now)
	f.server, f.started, f.gone = w.server, w.started, maps.Clone(w.gone)
	f.on(w.store.Clone(f.clock))
	return f
}

// wakeAll lets everybody look at everything.
func (w *world) wakeAll() {
	for _, obj := range w.store.All() {
		w.changed(nil, obj)
	}
}

// ownerIndex finds the Pods of what controls them, by its UID.
const ownerIndex = "owner"

func ownerOf(obj client.Object) []string {
	if owner := metav1.GetControllerOfNoCopy(obj); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

func (w *world) clock() time.Time { return w.now }

// readyIn is how long a Pod takes. What is there before the change is running.
func (w *world) readyIn(r Readiness, kind, name string) time.Duration {
	w.met[reference(kind, name)] = true
	if !w.begun {
		return 0
	}
	return r.of(kind, name)
}

// add adds an actor. Those that were added before it act before it.
func (w *world) add(actors ...actor) {
	for _, a := range actors {
		w.actors = append(w.actors, a)
		w.dirty = append(w.dirty, map[types.NamespacedName]bool{})
	}
}

// changed tells the actors of a write, and the recorder.
func (w *world) changed(before, after client.Object) {
	switch o := after.(type) {
	case *appsv1.StatefulSet:
		w.groups[client.ObjectKeyFromObject(o)] = vocabulary.GroupOf(o.Labels, o.Annotations)
	case *v1beta1.Instance:
		w.instances[client.ObjectKeyFromObject(o)] = true
	case *fleetv1.Module:
		w.modules[model.KindModule][client.ObjectKeyFromObject(o)] = true
	case *fleetv1.BootstrapModule:
		w.modules[model.KindBootstrap][client.ObjectKeyFromObject(o)] = true
	}
	if _, isPod := before.(*corev1.Pod); after == nil && !isPod {
		w.gone[before.GetUID()] = true
	}
	for i, a := range w.actors {
		for _, key := range a.wakes(before, after) {
			w.dirty[i][key] = true
		}
	}
	if !isJudgement(before, after) {
		w.acted = w.now
	}
	w.recorder.See(w.now.Sub(w.started), before, after)
}

// isJudgement is true if nothing has changed about a Deployment but what is said of it:
// that one which stands still is too late is no part of what a change does.
func isJudgement(before, after client.Object) bool {
	was, _ := before.(*appsv1.Deployment)
	is, ok := after.(*appsv1.Deployment)
	if !ok || was == nil {
		return false
	}
	same := *was
	same.ResourceVersion, same.Status.Conditions = is.ResourceVersion, is.Status.Conditions
	return equality.Semantic.DeepEqual(&same, is)
}

// rest lets everybody look until nobody has anything to do at this moment.
func (w *world) rest(ctx context.Context) error {
	for began := w.looks; ; {
		e, ok := w.next()
		if !ok {
			return nil
		}
		if w.looks++; w.looks-began > looksParallel*(1+len(w.dirty)+w.store.Len()) {
			return fmt.Errorf("it never rests: %s is looked at again and again", e.key)
		}
		w.run(ctx, e)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("simulate: %w", err)
		}
	}
}

// next is what is to be looked at next: by actor, then by name.
func (w *world) next() (errand, bool) {
	for i, keys := range w.dirty {
		if len(keys) > 0 {
			key := slices.MinFunc(slices.Collect(maps.Keys(keys)), compareKeys)
			delete(keys, key)
			return errand{i, key}, true
		}
	}
	return errand{}, false
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func (w *world) run(ctx context.Context, e errand) {
	delete(w.due, e)
	w.recorder.Begin()
	again, err := w.actors[e.actor].look(ctx, e.key)
	if err != nil {
		w.fail(e, err)
		return
	}
	delete(w.failed, e)
	delete(w.problems, e)
	if again > 0 {
		w.due[e] = w.now.Add(again)
	}
}

// fail puts a look off that has failed.
func (w *world) fail(e errand, err error) {
	w.problems[e] = err
	if w.failed[e]++; w.failed[e] <= retries {
		w.due[e] = w.now.Add(retryFirst << w.failed[e])
	}
}

// advance moves the clock to the next moment at which somebody has to look; false if
// there is none before the horizon.
func (w *world) advance() bool {
	var next time.Time
	for _, at := range w.due {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	w.beyond = next.After(w.started.Add(w.within))
	if next.IsZero() || w.beyond {
		return false
	}
	if next.After(w.now) {
		w.now = next
	}
	for e, at := range w.due {
		if !at.After(w.now) {
			w.dirty[e.actor][e.key] = true
		}
	}
	return true
}

// nextLook is when a ring looks again at what waits, zero if it does not.
func (w *world) nextLook(wait *Wait) time.Time {
	var next time.Time
	for e, at := range w.due {
		if r, ok := w.actors[e.actor].(*ring); ok && r.name == wait.Ring && concerns(e.key, wait) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// concerns is true of a look at what waits. The config ring looks at everything at once.
func concerns(key types.NamespacedName, wait *Wait) bool {
	return key.Name == "" || key.Namespace == wait.Namespace && strings.HasSuffix(wait.Object, "/"+key.Name)
}
