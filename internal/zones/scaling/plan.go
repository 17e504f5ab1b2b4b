package scaling

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/replay"
	"github.com/spillway-dev/spillway/internal/zones/lock"
	"github.com/spillway-dev/spillway/rollout"
)

// The parts of the tree: adding replicas needs no lock, nor does it to take back those that
// were added and for which there is no node.
const (
	up   = "upscale"
	down = "downscale"
	back = "take-back"
)

// Plan is what is about to be done, and what waits.
type Plan struct {
	rollout.Plan
	// Calls tell Pods to prepare, or that they stay. They come first, and what they
	// bring is decided upon again.
	Calls []Call
	// Scales are the replicas to write.
	Scales []Scale
	// WriteBacks are the status of mirrored objects to write.
	WriteBacks []WriteBack
	// Settlement is what becomes of what is written down about downscales.
	Settlement Settlement
}

// Call tells Pods of a set something.
type Call struct {
	Set      string
	Prepare  bool
	Ordinals []int
}

// Scale writes the replicas of a set.
type Scale struct {
	Set      *Set
	From, To int
	// Locks is true if the lock must be taken for it; otherwise the guards do.
	Locks bool
	// TakesBack is true if it is only written down, because no node ever had the Pods that go.
	TakesBack bool
	// record is when the lock was taken, nil if it may have been taken before.
	record *metav1.MicroTime
}

// WriteBack writes the status of a mirrored object.
type WriteBack struct {
	Mirror   Mirror
	Mirrored *Mirrored
	Replicas int
}

// wish is how many replicas a set is to have, and what keeps it from that.
type wish struct {
	set   *Set
	to    int
	block *rollout.Block
	calls []Call
}

// Decide makes the plan for a group. Who goes when is the engine's decision.
func Decide(o Observed) Plan {
	wishes := o.wishes()
	tree := o.tree(wishes)
	p := Plan{Plan: replay.Decide("replicas of RolloutGroup "+o.Name, tree), Settlement: o.settle()}
	p.Holds = slices.DeleteFunc(p.Holds, func(h rollout.Hold) bool { return !isWished(wishes, h.Path) })
	for i := range wishes {
		p.Calls = append(p.Calls, o.due(&wishes[i])...)
	}
	p.WriteBacks = o.writeBacks()
	p.Wake = sooner(o.Now, p.Wake, p.Settlement.Wake, o.Refusals.Wake(o.Now))
	if len(p.Calls) > 0 {
		return p
	}
	for _, step := range p.Steps {
		p.Scales = append(p.Scales, o.scale(wishes, step))
	}
	return p
}

func sooner(now time.Time, moments ...time.Time) time.Time {
	var wake time.Time
	for _, at := range moments {
		if at.After(now) && (wake.IsZero() || at.Before(wake)) {
			wake = at
		}
	}
	return wake
}

// callsTo returns the calls to a set.
func (p *Plan) callsTo(set string) []Call {
	return slices.DeleteFunc(slices.Clone(p.Calls), func(c Call) bool { return c.Set != set })
}

func (o *Observed) scale(wishes []wish, step rollout.Step) Scale {
	name := step.Path[len(step.Path)-1]
	i := slices.IndexFunc(wishes, func(w wish) bool { return w.set.Name == name })
	s := Scale{Set: wishes[i].set, From: wishes[i].set.Replicas, To: wishes[i].to, TakesBack: wishes[i].takesBack()}
	s.Locks = s.To < s.From && !s.Set.Settings.Prepares && o.HasGroup
	return s
}

// isWished is true of a hold of a set that is to be scaled, and not of one that others
// wait for: why that is down, its rollout says.
func isWished(wishes []wish, path rollout.Path) bool {
	return slices.ContainsFunc(wishes, func(w wish) bool {
		return len(path) > 1 && w.set.Name == path[1] && (path[0] != down || w.lowers() && !w.takesBack())
	})
}

// lowers is true if some set is to have fewer replicas, and nothing of its own keeps it. The
// minimum time does not keep one that takes back, which may be so only if no more are ready than
// are to remain.
func (o *Observed) lowers() bool {
	return slices.ContainsFunc(o.wishes(), func(w wish) bool {
		if !w.lowers() || w.block == nil || w.block.Reason == ReasonDelay {
			return w.lowers()
		}
		return w.block.Reason == ReasonMinTime && w.set.ReadyReplicas <= w.to
	})
}

func (w *wish) lowers() bool { return w.to < w.set.Replicas }

// takesBack is true of a set that only loses Pods that no node ever had.
func (w *wish) takesBack() bool { return w.lowers() && w.set.TakesBack && w.block == nil }

// tree is what the engine decides upon.
func (o *Observed) tree(wishes []wish) rollout.Observed {
	ups := rollout.Unit{Name: up, Group: true}
	downs := rollout.Unit{Name: down, Group: true, Policy: rollout.Policy{Order: rollout.OneAtATime}, Lock: lock.ForDownscale(&o.Status, o.Now)}
	backs := rollout.Unit{Name: back, Group: true, Lock: o.begun()}
	for i := range wishes {
		switch w := &wishes[i]; {
		case w.takesBack():
			backs.Children = append(backs.Children, o.unit(w))
		case w.lowers():
			downs.Children = append(downs.Children, o.unit(w))
		default:
			ups.Children = append(ups.Children, o.unit(w))
		}
	}
	for i := range o.Sets {
		if s := &o.Sets[i]; !slices.ContainsFunc(wishes, func(w wish) bool { return w.set == s && w.lowers() && !w.takesBack() }) {
			downs.Children = append(downs.Children, rollout.Unit{Name: s.Name, Leaf: s.leaf("as it is", "as it is")})
		}
	}
	return rollout.Observed{Now: o.Now, Self: o.self(), Root: rollout.Unit{Name: o.Name, Children: []rollout.Unit{ups, downs, backs}}}
}

// begun is the downscale that is written down, as a lock: there is one at a time. One that takes
// back goes on where a manager before this one has stopped.
func (o *Observed) begun() *rollout.Lock {
	d := o.Status.Downscale
	if d == nil || d.Unscheduled {
		return nil
	}
	return &rollout.Lock{Holder: lock.DownscaleHolder(d.Zone), Purpose: down, Unit: d.Zone, Since: d.At.Time}
}

func (o *Observed) unit(w *wish) rollout.Unit {
	unit := rollout.Unit{Name: w.set.Name, Block: w.block, Leaf: rollout.Leaf{
		Current: text(w.set.Replicas), Target: text(w.to), Health: rollout.Healthy, Settled: true,
	}}
	if w.lowers() && !w.takesBack() {
		unit.Leaf = w.set.leaf(unit.Leaf.Current, unit.Leaf.Target)
	}
	unit.Leaf.RetryAt, unit.Leaf.RetryReason = o.refusal(w)
	return unit
}

// refusal is until when a write is put off, and why: what a manager before this one has
// noted counts as well.
func (o *Observed) refusal(w *wish) (time.Time, string) {
	r := o.Refusals[w.set.Name]
	for i := range o.Status.RefusedDownscales {
		before := &o.Status.RefusedDownscales[i]
		if before.Zone == w.set.Name && before.UID == w.set.UID && w.to < w.set.Replicas && before.RetryAt != nil && before.RetryAt.After(r.At) {
			return before.RetryAt.Time, before.Message
		}
	}
	return r.At, r.Reason
}

// leaf is a set as the engine sees it. One of which a replica is down is disrupted, and
// recovers without being scaled.
func (s *Set) leaf(current, target string) rollout.Leaf {
	leaf := rollout.Leaf{Current: current, Target: target, Health: rollout.Healthy, Settled: true}
	if s.Down != "" {
		leaf.Health, leaf.Reason, leaf.MayRecover = rollout.Degraded, "unavailable ("+s.Down+")", true
	}
	return leaf
}

func text(n int) string { return strconv.Itoa(n) + " replicas" }

// self is who goes on where a manager before this one has taken the lock, and has not
// written yet.
func (o *Observed) self() string {
	if d := o.Status.Downscale; d != nil && !d.Prepares && !d.Unscheduled {
		return lock.DownscaleHolder(d.Zone)
	}
	return "scaling/" + o.Name
}

// wishes are those of all sets, by name.
func (o *Observed) wishes() []wish {
	var wishes []wish
	for i := range o.Sets {
		if w, ok := o.wish(&o.Sets[i]); ok && !w.set.Deleting {
			wishes = append(wishes, w)
		}
	}
	slices.SortFunc(wishes, func(a, b wish) int { return strings.Compare(a.set.Name, b.set.Name) })
	return wishes
}

// refuse keeps a set as it is, and makes the engine say why: what has no target that
// is known has one that is not reached.
func (w *wish) refuse(reason rollout.Reason, message string) {
	w.block = &rollout.Block{Reason: reason, Message: message}
	w.to = -1
}

// writeBacks bring the status of mirrored objects up to date, each with the replicas
// of the largest set that mirrors it, so that zones do not contradict one another.
func (o *Observed) writeBacks() []WriteBack {
	found := map[Mirror]*WriteBack{}
	for i := range o.Sets {
		s := &o.Sets[i]
		if s.Mirrored == nil || s.Mirrored.Problem != "" || !s.Settings.Mirror.WriteBack {
			continue
		}
		w := cmp.Or(found[*s.Settings.Mirror], &WriteBack{Mirror: *s.Settings.Mirror, Mirrored: s.Mirrored})
		w.Replicas = max(w.Replicas, s.Replicas)
		found[w.Mirror] = w
	}
	var due []WriteBack
	for _, w := range found {
		if w.Replicas != w.Mirrored.StatusReplicas && !o.Refusals.PutOff(w.Mirror.String(), o.Now) {
			due = append(due, *w)
		}
	}
	slices.SortFunc(due, func(a, b WriteBack) int { return strings.Compare(a.Mirror.String(), b.Mirror.String()) })
	return due
}

// due are the calls of a wish, unless they have just failed.
func (o *Observed) due(w *wish) []Call {
	if o.Refusals.PutOff(w.set.Name, o.Now) {
		return nil
	}
	return w.calls
}

// wish is what a set is to become; false if nothing is asked for.
func (o *Observed) wish(s *Set) (wish, bool) {
	w := wish{set: s, to: s.Replicas}
	switch {
	case !s.Settings.follows():
		return w, false
	case len(s.Settings.Problems) > 0:
		w.refuse(ReasonInvalid, problems(s))
	case s.Settings.Leader != "":
		o.follow(&w)
	default:
		o.mirror(&w)
	}
	o.contest(&w)
	return w, true
}

func problems(s *Set) string {
	return message.Join(s.Settings.Problems, "; ", Problem.String)
}

// follow is the rule for followers of a leader.
func (o *Observed) follow(w *wish) {
	s := w.set
	leader := o.set(s.Settings.Leader)
	switch {
	case leader == nil:
		w.refuse(ReasonLeader, "its leader "+s.Settings.Leader+" is not in the group; name one that is")
		return
	case o.cycle(s) != "":
		w.refuse(ReasonLeader, "its leaders follow one another: "+o.cycle(s))
		return
	}
	w.to = leader.Replicas
	if s.Settings.Force != nil {
		w.to = *s.Settings.Force
	}
	switch {
	case w.to > s.Replicas && s.Settings.OnlyWhenLeaderReady && !leader.isReady():
		w.block = &rollout.Block{Reason: ReasonLeaderNotReady, Message: fmt.Sprintf(
			"its leader %s has %d of %d replicas ready", leader.Name, leader.ReadyReplicas, leader.Replicas)}
	case w.to < s.Replicas && !s.TakesBack:
		w.block = o.minTime(s)
	}
}

func (s *Set) isReady() bool { return s.Settled && s.ReadyReplicas == s.Replicas }

// cycle is the chain of leaders if it comes back to the set, empty if it does not.
func (o *Observed) cycle(s *Set) string {
	chain := []string{s.Name}
	for at := s; len(chain) <= len(o.Sets); {
		chain = append(chain, at.Settings.Leader)
		if at.Settings.Leader == s.Name {
			return strings.Join(chain, " follows ")
		}
		if at = o.set(at.Settings.Leader); at == nil || at.Settings.Leader == "" {
			return ""
		}
	}
	return ""
}

// minTime keeps a set from being scaled down too early after another: by what it says
// itself, and by what the guards would say because of the other.
func (o *Observed) minTime(s *Set) *rollout.Block {
	var others []lock.Downscaled
	for i := range o.Sets {
		other := &o.Sets[i]
		last := lock.LastDownscale(&o.Status, other.Name, other.Settings.LastDownscale)
		if other.Name == s.Name || last.IsZero() {
			continue
		}
		wait, said := s.waitAfter(other)
		if !said {
			return &rollout.Block{Reason: ReasonMinTime, Message: "its minimum time after a downscale of " + other.Name +
				" is not set; annotate it with spillway.dev/min-time-between-zones-downscale"}
		}
		others = append(others, lock.Downscaled{Zone: other.Name, Last: last, Wait: wait})
	}
	return lock.MinTime(o.Now, others, func(d lock.Downscaled) string {
		return fmt.Sprintf("%s was scaled down at %s; the minimum time is %s", d.Zone, rollout.Clock(d.Last), d.Wait)
	})
}

// waitAfter is how long a set waits after another was scaled down.
func (s *Set) waitAfter(other *Set) (time.Duration, bool) {
	if s.Settings.MinTime == nil {
		return 0, false
	}
	wait := *s.Settings.MinTime
	if s.Settings.Prepares && other.Settings.MinTime != nil {
		wait = max(wait, *other.Settings.MinTime)
	}
	return wait, true
}

// mirror is the rule for sets that mirror an object.
func (o *Observed) mirror(w *wish) {
	s := w.set
	if s.Mirrored == nil || s.Mirrored.Problem != "" {
		why := "it has not been read yet"
		if s.Mirrored != nil {
			why = s.Mirrored.Problem
		}
		w.refuse(ReasonMirror, s.Settings.Mirror.String()+": "+why)
		return
	}
	w.to = s.Mirrored.Replicas
	if s.Settings.Force != nil {
		w.to = *s.Settings.Force
	}
	if s.Settings.Delay != nil {
		o.delay(w)
	}
}

// Explain are the sentences that say what a group does and waits for.
func (p *Plan) Explain() []string {
	var sentences []string
	for _, step := range p.Steps {
		sentences = append(sentences, step.Message())
	}
	for i := range p.Holds {
		sentences = append(sentences, p.Holds[i].Message)
	}
	if d := p.Settlement.Downscale; d != nil && d.Refused {
		sentences = append(sentences, fmt.Sprintf("%s is not scaled down from %d to %d replicas: it was refused; its Pods are called to stay", d.Zone, d.From, d.To))
	}
	return sentences
}
