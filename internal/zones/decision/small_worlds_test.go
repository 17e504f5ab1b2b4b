package decision

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/rollout"
)

// TestMain spends memory to save time: the small worlds leave a lot behind, not for long.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// The small worlds are all groups of up to three zones of up to three Pods each, in
// every combination of the states in which a Pod may be; with the lock free, ours
// or another client's; with zones that are paused, held, open or lent. In each of
// them the plan is compared with the rules, written down here a second time.
//
// They are far too many to be tried one by one, and need not be:
//
//   - The Pods of a zone that are in the same state are alike but for their
//     order, so that a zone is a multiset of states. That their order changes
//     only which of them go first is TestOrderOfPodsIsAPreference.
//   - Of a zone the others see no more than its kind: whether a Pod of it is down,
//     whether one that is up is outdated, and whether it is paused and how it is
//     held. That a zone may be replaced by any other of its kind without a
//     difference to the rest is TestZonesOfAKindAreAlike, which tries all pairs.
//
// So it is complete to let one zone range over all multisets, and the others over
// one zone of each kind, before it and behind it. Zones without Pods stand for
// groups of fewer zones. What concerns but one zone or leaves nothing else to do
// is tried in pairs of zones: larger budgets, another client's lock, under which
// nothing moves at all, and zones that are open without permission, where nothing
// is done but to hold them.

// podState is the state of a Pod in a small world.
type podState byte

const (
	oldUp      podState = 'U'
	oldDown    podState = 'D' // and it cannot become ready
	oldUnready podState = 'B' // down for a moment
	newUp      podState = 'u'
	newDown    podState = 'd'
	gone       podState = '-'
	permitted  podState = 'p' // old and up, and it may be deleted at any moment
	superseded podState = 's' // down, at a revision that is neither current nor wanted
)

// holding is how a zone is held.
type holding int

const (
	onDelete holding = iota
	isHeld
	isOpen
	isLent
)

// smallZone is a zone of a small world.
type smallZone struct {
	pods    string
	paused  bool
	holding holding
}

func (z smallZone) has(states ...podState) bool {
	return slices.ContainsFunc(states, func(s podState) bool { return strings.IndexByte(z.pods, byte(s)) >= 0 })
}

func (z smallZone) count(states ...podState) int {
	n := 0
	for _, s := range states {
		n += strings.Count(z.pods, string(rune(s)))
	}
	return n
}

func (z smallZone) down() int {
	return z.count(oldDown, oldUnready, newDown, gone, permitted, superseded)
}

// disrupted is true of a zone of which a Pod was replaced and is not ready yet.
func (z smallZone) disrupted() bool { return z.has(newDown, gone, permitted, superseded) }

// kind is all that other zones see of one. Those of which Pods are down for good must
// not wait for each other, and one Pod is repaired at a time, so that it matters as well
// whether something is to be repaired, or is being replaced, or is to be withdrawn.
func (z smallZone) kind() string {
	if z.holding == onDelete {
		return fmt.Sprint(z.down() > 0, z.has(oldUp), z.paused, z.has(oldDown), z.disrupted(), z.paused && z.has(permitted))
	}
	return fmt.Sprint(z.down() > 0, z.has(oldUp), z.paused, z.holding, z.open(), z.pods == "",
		z.has(oldDown), z.has(superseded), z.has(newDown, superseded), z.has(gone))
}

// open is true of a zone whose controller may bring Pods to the new revision; one
// without replicas is not.
func (z smallZone) open() bool { return z.holding == isLent || z.holding == isOpen && z.pods != "" }

// smallWorld is a group; lock is "", "them", or the index of the zone for which it is ours.
type smallWorld struct {
	zones []smallZone
	lock  string
	max   int
}

var zoneNames = []string{"zone-a", "zone-b", "zone-c", "zone-d"}

func (w smallWorld) observed() Observed {
	o := Observed{Now: noon, Server: Server{MaxUnavailable: true, AdvancesRevision: true}, Group: Group{Name: "ingester", Generation: 1}}
	o.Group.Spec.MaxUnavailable = new(intstr.FromInt32(int32(w.max)))
	o.Group.Status.Lock = w.lockObserved()
	for i := range w.zones {
		o.Group.Status.Zones = append(o.Group.Status.Zones, v1alpha1.Zone{Name: zoneNames[i], Revision: "v1"})
	}
	for i, z := range w.zones {
		set := Set{
			Name: zoneNames[i], UID: types.UID(zoneNames[i]), ResourceVersion: "10", Replicas: len(z.pods), MaxUnavailable: 1,
			CurrentRevision: "v1", UpdateRevision: "v2", Strategy: RollingUpdate, Settings: Settings{Paused: z.paused},
		}
		switch z.holding {
		case onDelete:
			set.Strategy = OnDelete
		case isHeld:
			set.Partition = Held
		case isLent:
			set.Strategy, set.Lent = OnDelete, true
		case isOpen:
		}
		for n := range z.pods {
			o.Group.Status.Moves = append(o.Group.Status.Moves, set.add(n, podState(z.pods[n]))...)
		}
		o.Sets = append(o.Sets, set)
	}
	return o
}

func (w smallWorld) lockObserved() *v1alpha1.Lock {
	switch w.lock {
	case "":
		return nil
	case "them":
		return &v1alpha1.Lock{Holder: "eviction", Purpose: v1alpha1.PurposeEviction}
	default:
		return &v1alpha1.Lock{Holder: "rollout/ingester", Purpose: v1alpha1.PurposeRollout, Zone: w.lock}
	}
}

// add adds a Pod in a state, and returns the move that there is of it.
func (s *Set) add(n int, state podState) []v1alpha1.Move {
	name := s.Name + "-" + string(rune('0'+n))
	pod := Pod{Name: name, Ordinal: n, UID: types.UID(name), ResourceVersion: "20", Revision: "v1", Ready: true, Since: noon.Add(-1)}
	switch state {
	case gone:
		return nil
	case newUp, newDown:
		pod.Revision = "v2"
	case superseded:
		pod.Revision = "v0"
	}
	pod.Broken = state == oldDown || state == superseded
	pod.Ready = state == oldUp || state == newUp || state == permitted
	s.Pods = append(s.Pods, pod)
	if state != permitted {
		return nil
	}
	return []v1alpha1.Move{{Zone: s.Name, Pod: name, UID: pod.UID, ResourceVersion: "20", Revision: "v2", At: metav1.NewMicroTime(noon)}}
}

// multisets are all zones of up to three Pods in such states, in one order each.
func multisets(states ...podState) []string {
	all := []string{""}
	for from, size := 0, 1; size <= 3; size++ {
		until := len(all)
		for _, smaller := range all[from:until] {
			for _, s := range states {
				if smaller == "" || slices.Index(states, podState(smaller[len(smaller)-1])) <= slices.Index(states, s) {
					all = append(all, smaller+string(rune(s)))
				}
			}
		}
		from = until
	}
	return all
}

// kinds has one zone of each kind among some.
func kinds(zones []smallZone) []smallZone {
	var reps []smallZone
	seen := map[string]bool{}
	for _, z := range zones {
		if !seen[z.kind()] {
			seen[z.kind()] = true
			reps = append(reps, z)
		}
	}
	return reps
}

// deleting are all zones of type OnDelete.
func deleting() []smallZone {
	var zones []smallZone
	for _, pods := range append(multisets(oldUp, oldDown, newUp, newDown, gone, permitted), "B", "UB", "DB", "BB", "Bd", "Bp") {
		zones = append(zones, smallZone{pods: pods}, smallZone{pods: pods, paused: true})
	}
	return zones
}

// rolling are all zones of type RollingUpdate.
func rolling() []smallZone {
	var zones []smallZone
	for _, h := range []holding{isHeld, isOpen, isLent} {
		for _, pods := range multisets(oldUp, oldDown, newUp, newDown, gone, superseded) {
			zones = append(zones, smallZone{pods: pods, holding: h})
		}
	}
	return zones
}

// everySmallWorld visits a zone among two others, of each kind, at each place,
// and all pairs of zones of each kind, with each lock and budget.
func everySmallWorld(t *testing.T, zones []smallZone, visit func(*testing.T, smallWorld)) {
	rested := kinds(slices.DeleteFunc(slices.Clone(zones), func(z smallZone) bool { return z.open() }))
	for place := range 3 {
		t.Run(fmt.Sprintf("place %d", place), func(t *testing.T) {
			t.Parallel()
			for _, z := range zones {
				eachPair(rested, func(pair []smallZone) {
					all := slices.Insert(pair, place, z)
					visit(t, smallWorld{zones: all, max: 1})
					if z.down() > 0 {
						visit(t, smallWorld{zones: all, lock: zoneNames[place], max: 1})
					}
				})
				if t.Failed() {
					return
				}
			}
		})
	}
	for _, z := range zones {
		for _, other := range kinds(zones) {
			for _, lock := range []string{"", zoneNames[0], zoneNames[1], "them"} {
				for budget := 1; budget <= 3; budget++ {
					visit(t, smallWorld{zones: []smallZone{z, other}, lock: lock, max: budget})
				}
			}
		}
	}
}

// eachPair visits all pairs of zones, in both orders.
func eachPair(zones []smallZone, visit func([]smallZone)) {
	for a := range zones {
		for b := range zones {
			visit([]smallZone{zones[a], zones[b]})
		}
	}
}

// TestEverySmallWorldOfDeletes: what is permitted is just what the rules say.
func TestEverySmallWorldOfDeletes(t *testing.T) {
	t.Parallel()
	everySmallWorld(t, deleting(), func(t *testing.T, w smallWorld) {
		p := w.plan(t)
		if got, want := newlyPermitted(&p), w.permits(); got != want {
			t.Errorf("%+v\npermits %q, ought to permit %q", w, got, want)
		}
		if got, want := written(&p, Delete), w.deletes(); got != want {
			t.Errorf("%+v\ndeletes %q, ought to delete %q", w, got, want)
		}
		if got, want := written(&p, Fence), w.withdraws(); got != want {
			t.Errorf("%+v\nwithdraws %q, ought to withdraw %q", w, got, want)
		}
		if l := p.Status.Lock; p.Permits && (l == nil || l.Holder != "rollout/ingester") {
			t.Errorf("%+v\npermits without the lock", w)
		}
	})
}

// plan is the plan for a world. The engine decides once, and once more where something
// is permitted, because the status says what is so then.
func (w smallWorld) plan(t *testing.T) Plan {
	t.Helper()
	asked, once := 0, 1
	p := plan(w.observed(), func(o rollout.Observed) rollout.Plan {
		asked++
		return rollout.Decide(o)
	})
	if p.Permits {
		once = 2
	}
	if asked != once {
		t.Errorf("%+v\nthe engine decides %d times, want %d", w, asked, once)
	}
	return p
}

// newlyPermitted are the Pods that the plan permits and that stood in no move.
func newlyPermitted(p *Plan) string {
	if !p.Permits {
		return ""
	}
	var names []string
	for _, m := range p.Status.Moves {
		if p.Tree.Root.Children != nil && !p.knew(m) {
			names = append(names, m.Zone+"/"+m.Pod)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// knew is true of a move that existed before: its leaf was being replaced.
func (p *Plan) knew(m v1alpha1.Move) bool {
	for _, zone := range p.Tree.Root.Children {
		for _, pod := range zone.Children {
			if pod.Name == m.Pod {
				return strings.Contains(pod.Leaf.Reason, "being replaced")
			}
		}
	}
	return false
}

func written(p *Plan, act Act) string {
	var names []string
	for _, w := range p.Writes {
		if w.Act == act {
			names = append(names, w.Zone+"/"+w.Pod)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// permits are the Pods that must be permitted, by the rules.
func (w smallWorld) permits() string {
	if w.lock == "them" || w.withdraws() != "" {
		return ""
	}
	var names []string
	turn, repairs := w.turn(), 0
	for i, z := range w.zones {
		room := w.max - z.down()
		inTurn := w.onlyDown(i) && room >= 0
		for n := range z.pods {
			goes := false
			switch state := podState(z.pods[n]); {
			case z.paused:
			case (state == oldDown || state == oldUnready) && inTurn:
				goes = true
			case state == oldDown && w.mayRepair(i) && repairs == 0:
				goes = true
				repairs++
			case state == oldUp && i == turn && room > 0:
				goes = true
				room--
			}
			if goes {
				names = append(names, fmt.Sprintf("%s/%s-%d", zoneNames[i], zoneNames[i], n))
			}
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// onlyDown is true if no Pod of another zone is down.
func (w smallWorld) onlyDown(i int) bool {
	for j, z := range w.zones {
		if j != i && z.down() > 0 {
			return false
		}
	}
	return true
}

// mayRepair is true of a zone in which a Pod may be replaced out of turn: no zone is
// disrupted, or it is the one for which the lock is ours, or the first. What is down under
// our lock may be so because we have moved it.
func (w smallWorld) mayRepair(i int) bool {
	first := -1
	for j, z := range w.zones {
		if z.disrupted() && first < 0 || z.down() > 0 && zoneNames[j] == w.lock {
			first = j
		}
	}
	return first < 0 || first == i
}

// turn is the zone in which a Pod may be taken down that is up, -1 if there is
// none: the one that is down already, if no other is; else the one for which the
// lock is ours; else the first that has something to do.
func (w smallWorld) turn() int {
	turn := -1
	for i, z := range w.zones {
		if z.down() > 0 {
			if turn >= 0 {
				return -1
			}
			turn = i
		}
	}
	for i, z := range w.zones {
		if turn < 0 && zoneNames[i] == w.lock && z.has(oldUp) && !z.paused {
			return i
		}
	}
	for i, z := range w.zones {
		if turn < 0 && z.has(oldUp) && !z.paused {
			return i
		}
	}
	return turn
}

// withdraws are the Pods that may be deleted at any moment, and must not be: their zone is
// paused. Nothing else is done until that is certain.
func (w smallWorld) withdraws() string {
	return w.permitted(func(_ int, z smallZone) bool { return z.paused })
}

// deletes are the Pods that must be deleted: those that are permitted, unless
// something else must be permitted or withdrawn first.
func (w smallWorld) deletes() string {
	return w.permitted(func(i int, z smallZone) bool {
		return !z.paused && w.lock == zoneNames[i] && w.permits() == "" && w.withdraws() == ""
	})
}

// permitted are the Pods of some zones that may be deleted at any moment.
func (w smallWorld) permitted(of func(int, smallZone) bool) string {
	var names []string
	for i, z := range w.zones {
		for n := range z.pods {
			if podState(z.pods[n]) == permitted && of(i, z) {
				names = append(names, fmt.Sprintf("%s/%s-%d", zoneNames[i], zoneNames[i], n))
			}
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestEverySmallWorldOfPartitions: never is a zone opened while another is not up
// or open, never one left open without permission; and while something is
// outdated there is something to do or to wait for.
func TestEverySmallWorldOfPartitions(t *testing.T) {
	t.Parallel()
	everySmallWorld(t, rolling(), func(t *testing.T, w smallWorld) {
		p := w.plan(t)
		w.checkHolds(t, &p)
		w.checkOpens(t, &p)
		w.checkDeletes(t, &p)
		w.checkGoesOn(t, &p)
	})
}

// checkHolds: what is open without permission is held, and nothing else is done.
func (w smallWorld) checkHolds(t *testing.T, p *Plan) {
	holds := 0
	for i, z := range w.zones {
		held := slices.ContainsFunc(p.Writes, func(write Write) bool { return write.Act == Hold && write.Zone == zoneNames[i] })
		if z.open() && w.lock != zoneNames[i] && !held {
			t.Errorf("%+v\n%s is left open", w, zoneNames[i])
		}
		if held {
			holds++
		}
	}
	if holds > 0 && (p.Permits || holds < len(p.Writes)) {
		t.Errorf("%+v\nsomething is done besides holding", w)
	}
}

// checkOpens: a zone is let go only while all others are up and held.
func (w smallWorld) checkOpens(t *testing.T, p *Plan) {
	for _, m := range p.Status.Moves {
		if m.Pod != "" || m.Lend {
			continue
		}
		for i, other := range w.zones {
			if zoneNames[i] != m.Zone && (other.down() > 0 || other.open()) || w.lock == "them" {
				t.Errorf("%+v\n%s is opened", w, m.Zone)
			}
		}
	}
}

// checkDeletes: only what is down is replaced, or what is up in a zone that is lent.
func (w smallWorld) checkDeletes(t *testing.T, p *Plan) {
	for _, m := range p.Status.Moves {
		i := slices.Index(zoneNames, m.Zone)
		if m.Pod == "" {
			continue
		}
		state := podState(w.zones[i].pods[m.Pod[len(m.Pod)-1]-'0'])
		if state == oldUp && w.zones[i].holding != isLent || w.lock == "them" || state == oldDown && w.zones[i].holding == isHeld {
			t.Errorf("%+v\n%s is to be replaced", w, m.Pod)
		}
	}
}

// checkGoesOn: if Pods are outdated and none is being replaced, then something is done.
// In a zone that is open it is its controller that does it, or that has to note
// that it is done.
func (w smallWorld) checkGoesOn(t *testing.T, p *Plan) {
	for i, z := range w.zones {
		turn := z.open() && w.lock == zoneNames[i]
		if z.has(newDown, gone) || w.lock == "them" || turn && (z.holding == isOpen || !z.has(oldUp, oldDown, superseded)) {
			return
		}
	}
	outdated := slices.ContainsFunc(w.zones, func(z smallZone) bool { return z.has(oldUp, oldDown, superseded) })
	if outdated && !p.Permits && len(p.Writes) == 0 {
		t.Errorf("%+v\nnothing is done", w)
	}
}

// TestZonesOfAKindAreAlike: in no pair does it make a difference to a zone if the
// other is replaced by another one of its kind.
func TestZonesOfAKindAreAlike(t *testing.T) {
	t.Parallel()
	for name, zones := range map[string][]smallZone{"deletes": deleting(), "partitions": rolling()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, other := range zones {
				for _, rep := range kinds(zones) {
					if rep.kind() != other.kind() || rep == other {
						continue
					}
					for _, z := range zones {
						a, b := decided(z, other), decided(z, rep)
						if a != b {
							t.Fatalf("%+v: beside %+v %q, beside %+v %q", z, other, a, rep, b)
						}
					}
				}
			}
		})
	}
}

// decided is what goes in the first of two zones, the lock being ours for it: what
// is permitted there, now or before, and whether it is held.
func decided(z, other smallZone) string {
	p := Decide(smallWorld{zones: []smallZone{z, other}, lock: zoneNames[0], max: 1}.observed())
	var done []string
	for _, m := range p.Status.Moves {
		if m.Zone == zoneNames[0] {
			done = append(done, m.Pod)
		}
	}
	for _, write := range p.Writes {
		if write.Zone == zoneNames[0] && write.Act == Hold {
			done = append(done, string(Hold))
		}
	}
	return strings.Join(done, ", ")
}

// TestOrderOfPodsIsAPreference: how many Pods of each state go does not depend on
// the order in which they stand.
func TestOrderOfPodsIsAPreference(t *testing.T) {
	t.Parallel()
	for _, h := range []holding{onDelete, isHeld, isOpen, isLent} {
		for _, pods := range multisets(oldUp, oldDown, newUp, newDown, gone) {
			if len(pods) < 3 {
				continue
			}
			want := chosen(smallZone{pods: pods, holding: h})
			for _, order := range []string{"021", "102", "120", "201", "210"} {
				other := string([]byte{pods[order[0]-'0'], pods[order[1]-'0'], pods[order[2]-'0']})
				if got := chosen(smallZone{pods: other, holding: h}); got != want {
					t.Fatalf("of %q %q go, of %q %q", pods, want, other, got)
				}
			}
		}
	}
}

// chosen are the states of the Pods that go, in any order.
func chosen(z smallZone) string {
	p := Decide(smallWorld{zones: []smallZone{z}, lock: zoneNames[0], max: 1}.observed())
	var states []byte
	for _, m := range p.Status.Moves {
		if m.Pod == "" {
			states = append(states, '*')
		} else {
			states = append(states, z.pods[m.Pod[len(m.Pod)-1]-'0'])
		}
	}
	slices.Sort(states)
	return string(states)
}
