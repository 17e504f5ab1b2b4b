package decision

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/replay"
	"github.com/spillway-dev/spillway/rollout"
)

// Staged is why a policy keeps a workload from being rolled.
type Staged struct {
	rollout.Block

	// Policy is the policy.
	Policy *policy.Policy
	// Release is the one that it holds.
	Release content.Release
	// firm is true if no other workload of the namespace has to become ready first.
	firm bool
}

// course is a release in a namespace, and the stages of a policy.
type course struct {
	releaseIn

	policy *policy.Policy
	// spread is the release over namespaces that it is a part of, nil if it is for itself.
	spread *spread
	parts  []part
	// places are those of the parts by the names of their units.
	places map[string]int
	// stages are the places of the parts.
	stages [][]int
}

// part is what moves as a whole in a stage: a workload, or the zones of a group.
type part struct {
	// workloads are their places among all.
	workloads []int
	member    policy.Member
	unit      rollout.Unit
}

// courseKey identifies a course. Another content is another one.
type courseKey struct {
	policy *policy.Policy
	releaseIn
}

// staging is the releases that policies are for, and that some workload does not have yet or
// has not proven to work with.
type staging struct {
	o         *Observed
	options   Options
	workloads []Workload
	courses   map[courseKey]*course
	ordered   []*course
	spreads   map[spreadName][]*spread
	plan      rollout.Plan
}

// stage finds out which workloads wait for their stage. It returns a copy of what was
// observed, or the same if no policy is for anything that is out of date.
func stage(o Observed, options Options) (Observed, *staging) {
	s := &staging{o: &o, options: options, workloads: o.Workloads, courses: map[courseKey]*course{}, spreads: map[spreadName][]*spread{}}
	if len(o.Policies) == 0 || !s.find() {
		return o, s
	}
	s.workloads = slices.Clone(o.Workloads)
	s.addMembers()
	s.addElsewhere()
	s.plan = replay.Decide("stages of config", rollout.Observed{Now: o.Now, Root: s.tree()})
	s.conclude()
	o.Workloads = s.workloads
	return o, s
}

func (o *Observed) policyFor(w *Workload, of content.Object) *policy.Policy {
	return o.Policies.For(w.Namespace, labels.Set(w.Object.GetLabels()), of)
}

// spreading is the policy whose stages of namespaces a workload and an object are in, nil if there is none.
func (o *Observed) spreading(w *Workload, of content.Object) *policy.Policy {
	return o.Policies.Spreading(w.Namespace, labels.Set(w.Object.GetLabels()), of)
}

// policiesFor are those that a workload waits for: the one that counts, and another one if that has stages of
// namespaces.
func (o *Observed) policiesFor(w *Workload, of content.Object) []*policy.Policy {
	counts, spreads := o.policyFor(w, of), o.spreading(w, of)
	switch {
	case counts == nil: // so there is no other
		return nil
	case spreads == nil || spreads == counts:
		return []*policy.Policy{counts}
	default:
		return []*policy.Policy{counts, spreads}
	}
}

// isUnderway is true if a workload is about to be rolled, or was rolled and has not proven to
// work yet, or went back: the release has failed, and does not end by that.
func (w *Workload) isUnderway(now time.Time) bool {
	switch {
	case !w.isStaged():
		return false
	case w.IsCurrent():
		return w.failure != nil || w.isProving(now) || w.isRolledBack()
	default:
		return len(w.Missing) == 0 && len(w.Denied) == 0 && (w.Hashes != nil || !w.Change.First.IsZero())
	}
}

// isStaged is true of workloads that wait for their stage. What has not been scheduled yet, or
// could not start, is not among them: it runs with nothing, and others may need it. Nor is what was created
// opted in and has no hash: its Pods have started with the present content, so it is not a
// release that it is rolled for.
func (w *Workload) isStaged() bool {
	return w.Settings.Tracked && w.Suspension.IsSettled() && (w.Accepted() != "" || w.IsOptedInLater() && !w.IsAwaiting())
}

// isProving is true of a workload that is not ready since the ring has rolled it. It is false
// of one that has just begun, of one whose Pods a user replaces, of one whose template was changed by another client, and, after a
// while, of one that was not ready before either.
func (w *Workload) isProving(now time.Time) bool {
	roll := &w.Records.Roll
	if w.isDone() || w.isMute() || roll.At.IsZero() || w.hasBegun() || roll.Unready && !w.mayStillTell(now) {
		return false
	}
	return w.maySettle(roll.At, now) && roll.Template == workload.TemplateDigest(w.Object)
}

// isMute is true of a workload that cannot show whether it works with a content: it has no Pods,
// or a user decides when they are replaced.
func (w *Workload) isMute() bool {
	return workload.HasNoPods(w.Object) || w.Zone.Group == "" && workload.IsHeldBack(w.Object)
}

// mayStillTell is true of a workload that was not ready before as long as its new Pods may show
// whether they work.
func (w *Workload) mayStillTell(now time.Time) bool {
	return now.Before(w.Records.Roll.At.Add(workload.ProgressDeadline)) && (w.Pods.Failing == 0 || w.failsNewly())
}

// isDone is true if all Pods are ready, and those of a zone are replaced.
func (w *Workload) isDone() bool {
	return w.isUp() && (w.Zone.Group == "" || workload.IsReplaced(w.Object))
}

// find finds the releases that are under way. It is false if there is none.
func (s *staging) find() bool {
	for i := range s.workloads {
		w := &s.workloads[i]
		if !w.isUnderway(s.o.Now) {
			continue
		}
		for _, r := range w.releasesUnderway() {
			for _, p := range s.o.policiesFor(w, r.Object) {
				if key := (courseKey{p, releaseIn{r, w.Namespace}}); s.courses[key] == nil {
					s.begin(key, s.spreadOf(p, w, r.Object))
				}
			}
		}
	}
	return len(s.ordered) > 0
}

// begin adds a course, of a release over namespaces if there is one.
func (s *staging) begin(key courseKey, of *spread) *course {
	c := &course{releaseIn: key.releaseIn, policy: key.policy, spread: of, places: map[string]int{}}
	s.courses[key], s.ordered = c, append(s.ordered, c)
	return c
}

// releasesUnderway are those that a workload is to be rolled for, or was.
func (w *Workload) releasesUnderway() []content.Release {
	switch {
	case !w.IsCurrent():
		return w.Lacks(w.Change.Keys)
	case w.failure != nil:
		return w.failure.Releases
	case w.isRolledBack():
		return w.ReleasesOf(w.Records.Roll.Changed)
	default:
		return slices.DeleteFunc(w.ReleasesOf(w.Records.Roll.Changed), func(r content.Release) bool { return !w.Runs(r) })
	}
}

// addMembers adds to each release the workloads that use its object.
func (s *staging) addMembers() {
	namespaces := map[string]bool{}
	for _, c := range s.ordered {
		namespaces[c.namespace] = true
	}
	for i := range s.workloads {
		w := &s.workloads[i]
		if !w.isStaged() || !namespaces[w.Namespace] && !s.isSpread(w) {
			continue
		}
		next := w.releasesUnderway()
		for _, r := range w.ReleasesOf(nil) {
			for _, c := range s.coursesOf(w, r) {
				p := s.part(i, w, r, !w.IsCurrent() && slices.Contains(next, r))
				s.tellOf(c, w, &p)
				c.add(p)
			}
		}
	}
	s.arrange()
}

// arrange puts the releases in order, and their members into stages.
func (s *staging) arrange() {
	slices.SortStableFunc(s.ordered, func(a, b *course) int {
		return cmp.Or(policy.Compare(a.policy, b.policy), strings.Compare(a.path(), b.path()))
	})
	for _, c := range s.ordered {
		if c.spread != nil {
			c.spread.courses = append(c.spread.courses, c)
			delete(c.spread.others, c.namespace)
		}
		members := make([]policy.Member, len(c.parts))
		for i := range c.parts {
			members[i] = c.parts[i].member
		}
		c.stages = c.policy.Divide(members)
	}
}

// add adds a workload, or a zone to its group: it counts as far as the last of its zones.
func (c *course) add(p part) {
	i, ok := c.places[p.unit.Name]
	if !ok {
		c.places[p.unit.Name] = len(c.parts)
		c.parts = append(c.parts, p)
		return
	}
	group := &c.parts[i]
	all := slices.Concat(group.workloads, p.workloads)
	if behind := p.isBehind(group); group.member.Mute && (behind || !p.member.Mute) || !p.member.Mute && behind {
		p.member.Labels = group.member.Labels
		*group = p
	}
	group.workloads = all
}

// isBehind is true if a zone has not come as far as another one of its group.
func (p *part) isBehind(other *part) bool {
	rank := func(u *rollout.Unit) int {
		switch l := &u.Leaf; {
		case l.Health == rollout.Failed:
			return 0
		case l.Current != l.Target:
			return 1
		case l.Health != rollout.Healthy:
			return 2
		default:
			return 3
		}
	}
	a, b := rank(&p.unit), rank(&other.unit)
	return a < b || a == b && p.unit.Leaf.HealthySince.After(other.unit.Leaf.HealthySince)
}

// part is a workload as the engine sees it, for a release that it has or would get.
func (s *staging) part(i int, w *Workload, r content.Release, outdated bool) part {
	name := w.called(w.Namespace)
	if w.Zone.Group != "" {
		name = "group " + w.Zone.Group
	}
	p := part{workloads: []int{i}, unit: rollout.Unit{Name: name}, member: policy.Member{
		Labels: w.Object.GetLabels(), Name: name, Priority: w.Settings.Priority, Claim: policy.ClaimNext, Disrupted: w.isProving(s.o.Now) || w.MayBeRolled,
		Mute: w.isMute(),
	}}
	if !outdated {
		p.unit.Leaf, p.member.Claim = s.leaf(w, r)
		p.member.Since = w.startedAt()
		return p
	}
	if f := w.recorded(r, s.o.Now); f != nil && w.stop != nil { // a user went back to what it had before
		p.unit.Leaf, p.member.Claim = failedLeaf(f.Cause), policy.ClaimHas
		return p
	}
	p.unit.Leaf = rollout.Leaf{Current: earlier, Target: released, Health: rollout.Healthy, Priority: w.Settings.Priority}
	if p.member.Disrupted {
		p.unit.Leaf.Health = rollout.Progressing
	}
	p.unit.Block = w.block(s.o.Now, s.options)
	if w.Settings.Paused {
		p.unit.Pause = &rollout.Pause{}
	}
	if w.Retry != nil {
		p.unit.Leaf.RetryAt, p.unit.Leaf.RetryReason = w.Retry.At, w.Retry.Reason
	}
	// That changes are collected and read lasts for a moment: one that was rolled just now, and shows soon
	// whether it works, must not lose its place to another by that.
	brief := p.member.Disrupted && p.unit.Block != nil && w.Retry == nil && (p.unit.Block.Reason == ReasonCoalescing || p.unit.Block.Reason == ReasonUnread)
	p.member.Last = (p.unit.Block != nil && !brief || p.unit.Pause != nil || w.Retry.Pending(s.o.Now)) && !w.mayHave(s.o.Now)
	return p
}

// mayHave is true of a workload that may have been rolled a moment ago for all that it would be rolled for: a
// manager that has just begun does not know what has changed since, or the answer was lost. It keeps its place,
// as others would follow it.
func (w *Workload) mayHave(now time.Time) bool {
	return w.MayBeRolled || len(w.Change.Keys) == 0 && w.isProving(now) && w.rolling(now)
}

// leaf is a workload that has the content of a release.
func (s *staging) leaf(w *Workload, r content.Release) (rollout.Leaf, policy.Claim) {
	l := rollout.Leaf{Current: released, Target: released, Health: rollout.Healthy, HealthySince: w.startedAt()}
	kept, _ := workload.Kept(w.Object)
	patient := !s.options.KeepGoing && !w.Settings.Unstoppable || s.o.Now.Before(w.Records.Roll.At.Add(workload.ProgressDeadline))
	gone := w.recorded(r, s.o.Now)
	switch {
	case !w.Runs(r) && gone != nil: // it went back after it had failed
		l.Health, l.Reason = rollout.Failed, gone.Cause
	case !w.Runs(r):
		return l, policy.ClaimNone
	case w.failure != nil && slices.Contains(w.failure.Releases, r):
		l.Health, l.Reason = rollout.Failed, w.failure.Cause
	case kept > 0, w.isMute(): // its Pods run an earlier content, or it has none
		return l, policy.ClaimNone
	case w.isDone():
		if w.Pods.Readable && w.Pods.New > 0 || w.Pods.Unknown != "" {
			l.HealthySince = w.Pods.ReadySince
		}
	case w.lacksRoom(s.o.Now) != "": // its config has not run yet
		return l, policy.ClaimNone
	case w.isNoWorse():
		if l.HealthySince = w.Pods.FirstReady; l.HealthySince.Before(w.Records.Roll.At) { // it had the content before, and shows it since
			l.HealthySince = w.Records.Roll.At
		}
	case w.isProving(s.o.Now) && patient, w.mayFailMixed(s.o.Now) && patient && !isProven(s.workloads, w.Namespace, r):
		l.Health = rollout.Progressing
	default:
		return l, policy.ClaimNone
	}
	return l, policy.ClaimHas
}

// startedAt is when a workload was rolled last, or was created.
func (w *Workload) startedAt() time.Time {
	roll := &w.Records.Roll
	switch {
	case roll.Admitted.After(roll.At):
		return roll.Admitted
	case !roll.At.IsZero():
		return roll.At
	}
	return w.Object.GetCreationTimestamp().Time
}

// tree is the input of the engine: each release beneath its policy.
func (s *staging) tree() rollout.Unit {
	root := rollout.Unit{Group: true, Policy: rollout.Policy{OnFailure: rollout.Continue}}
	for _, c := range s.ordered {
		last := len(root.Children) - 1
		if last < 0 || root.Children[last].Name != c.policy.String() {
			root.Children = append(root.Children, rollout.Unit{
				Name: c.policy.String(), Group: true, Policy: root.Policy, Pause: c.policy.Pause, Block: cmp.Or(c.policy.Block(s.o.Now), s.unread(c.policy)),
			})
			last++
		}
		of := &root.Children[last]
		switch {
		case c.spread == nil:
			of.Children = append(of.Children, s.unit(c))
		case c.spread.courses[0] == c:
			of.Children = append(of.Children, s.spreadUnit(c.spread))
		}
	}
	return root
}

// unit is a release as the engine sees it: its stages, one after the other.
func (s *staging) unit(c *course) rollout.Unit {
	onFailure := s.onFailure(c.policy)
	u := rollout.Unit{Name: c.path(), Group: true, Policy: rollout.Policy{Order: rollout.Series, OnFailure: onFailure}}
	for i := range c.policy.Stages {
		stage := &c.policy.Stages[i]
		child := rollout.Unit{Name: stageName(stage), Group: true, Gates: s.gates(c, stage), Policy: rollout.Policy{
			MaxUnavailable: stage.MaxUnavailable, MaxFailures: stage.MaxFailures, Soak: stage.Soak, OnFailure: onFailure,
		}}
		for _, k := range c.stages[i] {
			child.Children = append(child.Children, c.parts[k].unit)
		}
		u.Children = append(u.Children, child)
	}
	return u
}

func (s *staging) onFailure(p *policy.Policy) rollout.OnFailure {
	if s.options.KeepGoing {
		return rollout.Continue
	}
	return p.OnFailure
}

func stageName(s *policy.Stage) string { return policy.UnitOf(s.Name) }

// conclude notes on the workloads what the engine has decided.
func (s *staging) conclude() {
	holds := make(map[string]*rollout.Hold, len(s.plan.Holds))
	for i := range s.plan.Holds {
		holds[s.plan.Holds[i].Path.String()] = &s.plan.Holds[i]
	}
	leads := map[int]*policy.Policy{}
	for _, c := range s.ordered { // the policy that counts most comes first
		for i, members := range c.stages {
			for _, k := range members {
				p := &c.parts[k]
				h := holds[append(s.at(c), stageName(&c.policy.Stages[i]), p.unit.Name).String()]
				s.note(c, p, h, leads)
			}
		}
	}
}

// note notes why the workloads of a part wait. Of several policies the first decides on order
// and budget, so that workloads of two policies never wait for each other; what is paused,
// failed or outside of its windows waits in any case.
func (s *staging) note(c *course, p *part, h *rollout.Hold, leads map[int]*policy.Policy) {
	for _, i := range p.workloads {
		w := &s.workloads[i]
		if w.IsCurrent() || p.unit.Leaf.Current == p.unit.Leaf.Target {
			continue
		}
		if leads[i] == nil {
			leads[i] = c.policy
		}
		staged := s.block(c, h)
		if staged != nil && (leads[i] == c.policy || staged.firm) && (w.staged == nil || staged.firm && !w.staged.firm) {
			w.staged = staged
		}
	}
}

// isFirm is true of reasons for which no other workload has to become ready.
func isFirm(r rollout.Reason) bool {
	return slices.Contains([]rollout.Reason{
		rollout.ReasonPaused, policy.ReasonWindow, policy.ReasonInvalid, rollout.ReasonFailed, rollout.ReasonDeadline, ReasonConfigFailed,
		rollout.ReasonGate, rollout.ReasonGateRefused, ReasonNotPermitted, ReasonNotObserved,
	}, r)
}

// block is why a release does not go on, for a workload that would get it, nil if nothing keeps it. What it waits for in other
// namespaces is firm: these do not wait for its own.
func (s *staging) block(c *course, h *rollout.Hold) *Staged {
	if h == nil || h.Reason == rollout.ReasonRetry {
		return nil
	}
	elsewhere := c.spread != nil && len(h.On) > 0 && !h.On.Under(s.at(c))
	root := h.Cause.Root
	if elsewhere {
		root = s.elsewhere(c, h)
	}
	staged := &Staged{Policy: c.policy, Release: c.Release, firm: elsewhere || isFirm(h.Reason), Block: rollout.Block{
		Reason: h.Reason, Message: fmt.Sprintf("%s holds %s: %s", c.policy.Called(), c.From(c.namespace), root), About: c.policy.Ref(),
		Since: h.Since, Until: h.Until,
	}}
	if isFailure(h) {
		staged.Reason = ReasonConfigFailed
	}
	return staged
}
