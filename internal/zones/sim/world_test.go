package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

// set is a StatefulSet as the API server holds it.
type set struct {
	setSpec

	name     string
	uid      types.UID
	version  uint64
	deleting bool
	paused   bool
	lent     bool
	order    *int
	// observed is the generation of which the status speaks.
	observed        int64
	current, update string
}

// setSpec is what its controller goes by.
type setSpec struct {
	generation      int64
	replicas, first int
	strategy        string
	partition       int
	// maxUnavailable is 0 where it is not set.
	maxUnavailable int
	template       string
	ordered        bool
	minReady       time.Duration
}

// pod is a Pod as the API server holds it.
type pod struct {
	name, zone  string
	ordinal     int
	owner, uid  types.UID
	version     uint64
	revision    string
	created     time.Time
	terminating bool
	ready       bool
	// wasReady is true of a Pod that has been ready.
	wasReady bool
	since    time.Time
	// broken is true of a Pod that says itself that it will not become ready.
	broken bool
}

// podName is the name of the replica of an ordinal.
func (s *set) podName(ordinal int) string { return s.name + "-" + strconv.Itoa(ordinal) }

// group is the RolloutGroup as the API server holds it.
type group struct {
	version    uint64
	generation int64
	spec       v1alpha1.RolloutGroupSpec
	status     v1alpha1.RolloutGroupStatus
}

// world is what there is, and the dice.
type world struct {
	rnd    *rand.Rand
	now    time.Time
	caps   decision.Server
	oracle *oracle

	version uint64
	// podsAt and setsAt are the versions of the last change of these kinds.
	podsAt, setsAt uint64

	group group
	sets  []set
	pods  []pod
	// seen is what the controller of a set has seen of its spec.
	seen map[types.UID]setSpec

	habits

	// flaps is true of a world in which Pods break automatically, or users do
	// what takes Pods away.
	flaps bool
	storm bool
	// revisions counts the templates that there were, uids the objects.
	revisions, uids int
	// edits are templates that a user is about to apply, one after the other.
	edits []edit
	// flights are requests that have not arrived.
	flights []flight
	// writes are those of the managers.
	writes int
	// counts are how often something happened, by its word. The log is kept only
	// of a world that is logged, as words cost more than all the rest.
	counts map[string]int
	told   bool
	log    []string
}

// habits are how likely things go wrong in a world; each has its own.
type habits struct {
	// lazy is how likely a manager does not look at a kind again, frozen that it
	// loses a watch, sleepy that it does not run for a while.
	lazy, frozen, sleepy float64
	// keen is how likely the controller observes a set, and sees its spec.
	keen float64
	// grace is how likely it is that a Pod that was scaled away is gone when another would be.
	grace float64
}

// edit is a template for a zone.
type edit struct{ zone, template string }

const groupName = "ingester"

var noon = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

func newWorld(seed uint64, told bool) *world {
	w := &world{
		rnd: rand.New(rand.NewPCG(seed, 4)), now: noon, storm: true, told: told,
		seen: map[types.UID]setSpec{}, counts: map[string]int{},
	}
	w.oracle = newOracle(w)
	w.flaps = w.chance(0.5)
	w.habits = habits{
		lazy: w.rnd.Float64(), frozen: w.rnd.Float64() * 0.05, sleepy: w.rnd.Float64() * 0.05, keen: 0.15 + w.rnd.Float64()*0.7,
		grace: 0.05 + w.rnd.Float64(),
	}
	w.caps = decision.Server{MaxUnavailable: w.chance(0.6), AdvancesRevision: w.chance(0.7)}
	w.group = group{version: w.next(), generation: 1, spec: w.policy()}

	shape := set{setSpec: setSpec{strategy: decision.OnDelete, ordered: w.chance(0.5)}}
	if w.chance(0.5) {
		shape.strategy, shape.partition = decision.RollingUpdate, w.pick(0, decision.Held)
	}

	if w.chance(0.3) {
		shape.minReady = w.seconds(1, 15)
	}

	for i := range 2 + w.rnd.IntN(3) {
		shape.first = w.pick(0, 0, 0, 5)
		s := w.addSet("zone-"+string(rune('a'+i)), shape)
		if s.strategy == decision.RollingUpdate && s.partition == 0 {
			w.oracle.exposed(s)
		}
	}

	return w
}

func (w *world) chance(p float64) bool { return w.rnd.Float64() < p }

func (w *world) pick(of ...int) int { return of[w.rnd.IntN(len(of))] }

func (w *world) seconds(from, to int) time.Duration {
	return time.Duration(from+w.rnd.IntN(to-from+1)) * time.Second
}

// next is a new resource version.
func (w *world) next() uint64 {
	w.version++

	return w.version
}

// nextPod and nextSet are those of these kinds.
func (w *world) nextPod() uint64 {
	w.podsAt = w.next()

	return w.podsAt
}

func (w *world) nextSet() uint64 {
	w.setsAt = w.next()

	return w.setsAt
}

func (w *world) uid() types.UID {
	w.uids++

	return types.UID(strconv.Itoa(w.uids))
}

// count counts something that happened.
func (w *world) count(what string) { w.counts[what]++ }

func (w *world) notef(format string, args ...any) {
	if w.told {
		w.log = append(w.log, w.now.Format("15:04:05  ")+fmt.Sprintf(format, args...))
	}
}

// addSet adds a zone that is settled already.
func (w *world) addSet(name string, shape set) *set {
	s := shape
	s.name, s.uid, s.version = name, w.uid(), w.nextSet()
	s.replicas = 1 + w.rnd.IntN(3)
	s.generation, s.observed = 1, 1
	s.template, s.current, s.update = "r0", "r0", "r0"
	w.seen[s.uid] = s.setSpec

	for i := range s.replicas {
		w.pods = append(w.pods, pod{
			name: s.podName(s.first + i), zone: name, ordinal: s.first + i, owner: s.uid, uid: w.uid(), version: w.nextPod(), revision: "r0",
			created: w.now.Add(-time.Hour), ready: true, wasReady: true, since: w.now.Add(-time.Hour),
		})
	}

	w.sets = append(w.sets, s)

	return &w.sets[len(w.sets)-1]
}

func (w *world) set(name string) *set {
	for i := range w.sets {
		if w.sets[i].name == name {
			return &w.sets[i]
		}
	}

	return nil
}

// pod is the Pod of an ordinal that a set owns.
func (w *world) pod(s *set, ordinal int) *pod {
	for i := range w.pods {
		if p := &w.pods[i]; p.owner == s.uid && p.ordinal == ordinal {
			return p
		}
	}

	return nil
}

func (w *world) podNamed(name string) *pod {
	for i := range w.pods {
		if w.pods[i].name == name {
			return &w.pods[i]
		}
	}

	return nil
}

// changed gives an object a new version.
func (w *world) changed(s *set) { s.version = w.nextSet() }

// respecified is changed for what belongs to the spec.
func (w *world) respecified(s *set) {
	s.generation++
	w.changed(s)
}

// remove takes a Pod away immediately.
func (w *world) remove(name string) {
	w.nextPod()
	w.pods = slices.DeleteFunc(w.pods, func(p pod) bool { return p.name == name })
}

// minReady is how long a Pod of a set must be ready.
func (w *world) minReady(s *set) time.Duration {
	return max(s.minReady, time.Duration(w.group.spec.MinReadySeconds)*time.Second)
}

// isUp is true if a Pod is available.
func (w *world) isUp(s *set, p *pod) bool {
	return p != nil && !p.terminating && p.ready && !w.now.Before(p.since.Add(w.minReady(s)))
}

// isSurplus is true of a Pod that the spec of its set does not ask for.
func (w *world) isSurplus(p *pod) bool {
	s := w.set(p.zone)

	return s != nil && p.owner == s.uid && !w.oracle.isReplica(s, p)
}

// isWell is true if every replica of every zone is up, no Pod is beyond these, and no
// client may take one down.
func (w *world) isWell() bool {
	for i := range w.sets {
		s := &w.sets[i]
		if s.generation != s.observed || s.strategy == decision.RollingUpdate && s.partition < s.replicas || s.lent {
			return false
		}

		for o := range s.replicas {
			if !w.isUp(s, w.pod(s, s.first+o)) {
				return false
			}
		}
	}

	return len(w.group.status.Moves) == 0 && !slices.ContainsFunc(w.pods, func(p pod) bool { return w.isSurplus(&p) })
}
