package prove

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// The rules that every change is checked by.
const (
	// RuleEnds is that a change completes if nothing fails.
	RuleEnds = "change-completes"
	// RuleSettles is that nothing is tried for ever at one moment.
	RuleSettles = "manager-settles"
	// RulePerson is that whatever waits for ever says what a person does about it.
	RulePerson = "waits-name-an-action"
	// RuleComplete is that everything has what the change brings once nothing waits.
	RuleComplete = "complete-is-done"
	// RuleBadStops is that a bad version does not get to every unit of a rollout.
	RuleBadStops = "bad-version-stops"
	// RuleZones is that no Pod of a zone is taken down while one of another zone is not ready.
	RuleZones = "one-zone-at-a-time"
	// RuleBudget is that no unit is taken down beyond maxUnavailable.
	RuleBudget = "max-unavailable"
	// RuleOrder is that no unit gets the change before those of the stages before its own are ready
	// with it.
	RuleOrder = "stages-in-order"
	// RuleSoak is that no stage begins before the one before it was ready for as long as it soaks.
	RuleSoak = "stages-soak"
	// RuleGates is that no stage begins before its gates, and those of the stages before it, have passed.
	RuleGates = "gates-pass"
	// RulePause is that nothing gets the change while it is paused.
	RulePause = "paused-stays"
	// RuleRemovals is that no more clusters lose a module than maxRemoved, without an approval.
	RuleRemovals = "max-removed"
)

// Rules returns what each rule says.
func Rules() map[string]string {
	return map[string]string{
		RuleEnds:     "a change completes if nothing fails",
		RuleSettles:  "the manager comes to rest",
		RulePerson:   "what waits for ever names what a person does about it",
		RuleComplete: "once nothing waits, everything has what the change brings",
		RuleBadStops: "a bad version does not get to every unit of a rollout",
		RuleZones:    "no Pod of a group is replaced while a Pod of another zone is not ready",
		RuleBudget:   "no more units are unavailable because of a rollout than maxUnavailable",
		RuleOrder:    "a stage begins once those before it are ready with the change",
		RuleSoak:     "a stage begins once the one before it has soaked",
		RuleGates:    "a stage begins once the gates before it have passed",
		RulePause:    "what is paused keeps what it has",
		RuleRemovals: "no more clusters lose a module than maxRemoved without an approval",
	}
}

// defect is what to do about a rule that no change can break.
const defect = "report it: this is a defect of Spillway"

// actions are what prevents that a rule is broken, as far as that is the same for every change.
var actions = map[string]string{
	RuleEnds:     "correct what the message names; spillway simulate shows every step",
	RulePerson:   defect,
	RuleSettles:  defect,
	RuleComplete: defect,
	RuleZones:    defect,
	RuleBudget:   defect,
	RuleOrder:    defect,
	RuleSoak:     defect,
	RuleGates:    defect,
	RulePause:    defect,
	RuleRemovals: defect,
	RuleBadStops: "add a first stage, with a soak that is longer than a bad version takes to show",
}

// policies are those of the config that changes.
type policies struct {
	set policy.Set
	// uses is what each workload uses of the config that changes.
	uses map[string][]content.Object
}

// contentsOf returns a digest of each ConfigMap and Secret.
func contentsOf(p *simulate.Play) map[record.Key]string {
	all := map[record.Key]string{}
	for _, obj := range p.Store().Objects(&corev1.ConfigMap{}, "") {
		if m, ok := obj.(*corev1.ConfigMap); ok {
			all[record.KeyOf("ConfigMap", m.Namespace, m.Name)] = fmt.Sprint(m.Data, m.BinaryData)
		}
	}
	for _, obj := range p.Store().Objects(&corev1.Secret{}, "") {
		if s, ok := obj.(*corev1.Secret); ok {
			all[record.KeyOf("Secret", s.Namespace, s.Name)] = s.ResourceVersion
		}
	}
	return all
}

// place finds out what updates each unit.
func (e *explorer) place(b *branch, units []Unit) {
	e.policies.uses = e.changedUses(b)
	for _, kind := range []client.Object{&v1alpha1.ConfigPolicy{}, &v1alpha1.ClusterConfigPolicy{}} {
		for _, obj := range b.Store().Objects(kind, "") {
			e.policies.set = append(e.policies.set, policy.Read(obj))
		}
	}
	slices.SortFunc(e.policies.set, policy.Compare)
	e.rollouts = map[string]record.Key{}
	for i := range units {
		u := &units[i]
		e.rollouts[u.id()] = record.KeyOf("", u.Namespace, u.Rollout)
		if p := e.policies.of(u); p != nil {
			e.rollouts[u.id()] = record.KeyOf("", p.Namespace, record.Reference(p.Kind, p.Name))
		} else if len(e.policies.uses[u.id()]) > 0 {
			e.rollouts[u.id()] = record.KeyOf("", u.Namespace, "config of namespace "+u.Namespace)
		}
	}
}

// changedUses returns what each workload uses of the config that changes.
func (e *explorer) changedUses(b *branch) map[string][]content.Object {
	changed := map[content.Object]bool{}
	for of, is := range contentsOf(b.Play) {
		if e.contents[of] != is {
			changed[content.Object{Kind: content.Kind(of.Kind), Namespace: of.Namespace, Name: of.Name}] = true
		}
	}
	uses := map[string][]content.Object{}
	for _, kind := range workloadKinds() {
		for _, obj := range b.Store().Objects(kind, "") {
			u := ofWorkload(obj)
			for _, ref := range workload.ManifestOf(obj).Uses {
				if changed[ref.Object] && !slices.Contains(uses[u.id()], ref.Object) {
					uses[u.id()] = append(uses[u.id()], ref.Object)
				}
			}
		}
	}
	return uses
}

// of returns the policy by which a workload gets what has changed, nil if there is none.
func (p *policies) of(u *Unit) *policy.Policy {
	for _, o := range p.uses[u.id()] {
		if found := p.by(u, o); found != nil {
			return found
		}
	}
	return nil
}

// by returns the policy by which a workload gets an object, nil if there is none, or if it does not get that.
func (p *policies) by(u *Unit, o content.Object) *policy.Policy {
	if o.Namespace != u.Namespace || !slices.Contains(p.uses[u.id()], o) {
		return nil
	}
	return p.set.For(u.Namespace, labels.Set(u.Labels), o)
}

// see checks what a ring or a controller has written.
func (e *explorer) see(b *branch, by string, changes []simulate.Change) {
	if !e.exploring {
		return
	}
	var moves []move
	for _, c := range changes {
		moves = append(moves, e.movesBy(by, c)...)
		e.checkRemovals(b, by, c)
		if pod, ok := c.Before.(*corev1.Pod); ok && goes(pod, c.After) {
			e.checkPod(b, pod)
		}
	}
	slices.SortFunc(moves, func(a, b move) int { return cmp.Compare(a.id(), b.id()) }) // a ring makes some writes together
	for i := range moves {
		if !moves[i].wasReady {
			b.sick[moves[i].id()] = true
		}
	}
	for i := range moves {
		e.checkPause(b, &moves[i])
		e.checkMove(b, &moves[i])
	}
	for i := range moves {
		u := &moves[i].Unit
		for _, r := range e.stagedOf(b, u) {
			b.begun[begun{e.rollouts[u.id()], r.target, r.stageOf(u)}] = true
		}
	}
	for _, c := range changes {
		e.noteReady(b, c.After)
	}
}

// noteReady notes since when units are ready with what the change brings.
func (e *explorer) noteReady(b *branch, obj client.Object) {
	var units []Unit
	switch obj.(type) {
	case *appsv1.Deployment, *appsv1.DaemonSet, *appsv1.StatefulSet:
		units = []Unit{ofWorkload(obj)}
	case *fleetv1.ProxyAssemblage, *fleetv1.RemoteAssemblage:
		units = ofCluster(obj)
	}
	for i := range units {
		u := &units[i]
		_, was := b.ready[u.id()]
		switch is := e.goals.has(u) && u.Ready; {
		case is && !was:
			b.ready[u.id()] = b.At()
		case !is && was:
			delete(b.ready, u.id())
		}
	}
}

// goes reports whether a Pod is taken away that was not being so.
func goes(pod *corev1.Pod, after client.Object) bool {
	is, _ := after.(*corev1.Pod)
	return pod.DeletionTimestamp == nil && (is == nil || is.DeletionTimestamp != nil)
}

// movesBy returns the units that get what the change brings by a write of a ring.
func (e *explorer) movesBy(ring string, c simulate.Change) []move {
	if c.Before == nil || c.After == nil {
		return nil
	}
	switch c.Before.(type) {
	case *appsv1.Deployment, *appsv1.DaemonSet, *appsv1.StatefulSet:
		if ring == record.RingConfig {
			moves := e.movesOf([]Unit{ofWorkload(c.Before)}, []Unit{ofWorkload(c.After)})
			for i := range moves {
				moves[i].isPaused = workload.ManifestOf(c.Before).Paused
			}
			return moves
		}
	case *fleetv1.ProxyAssemblage, *fleetv1.RemoteAssemblage:
		if ring == record.RingFleet {
			return e.movesOf(e.placed(ofCluster(c.Before)), e.placed(ofCluster(c.After)))
		}
	}
	return nil
}

// move is a unit that gets what the change brings.
type move struct {
	Unit

	// isPaused reports whether its own annotation pauses it.
	wasReady, isPaused bool
}

// movesOf returns those that get what the change brings by a write.
func (e *explorer) movesOf(before, after []Unit) []move {
	had := map[string]Unit{}
	for _, u := range before {
		had[u.id()] = u
	}
	var moves []move
	for _, u := range after {
		if was := had[u.id()]; u.Revision != was.Revision && e.goals.has(&u) {
			moves = append(moves, move{Unit: u, wasReady: was.Ready})
		}
	}
	return moves
}

// checkPod checks that a Pod of a group may be replaced.
func (e *explorer) checkPod(b *branch, pod *corev1.Pod) {
	group := b.GroupOf(pod)
	if group == "" || !isUp(pod) {
		return
	}
	of := record.KeyOf("", pod.Namespace, record.Reference("RolloutGroup", group))
	g, _ := b.Store().Object(&v1alpha1.RolloutGroup{}, types.NamespacedName{Namespace: pod.Namespace, Name: group}).(*v1alpha1.RolloutGroup)
	for _, obj := range b.Store().Objects(&appsv1.StatefulSet{}, pod.Namespace) {
		set, ok := obj.(*appsv1.StatefulSet)
		if !ok || b.GroupOf(set) != group {
			continue
		}
		replicas := podsOf(b.Play, set)
		down := slices.DeleteFunc(slices.Clone(replicas), func(o ordinal) bool { return isUp(o.pod) || o.name == pod.Name })
		own := slices.ContainsFunc(replicas, func(o ordinal) bool { return o.name == pod.Name })
		if own && (g != nil && g.Spec.Pause != nil || vocabulary.RolloutPaused.Get(set.Annotations) == "true") {
			e.broken(b, RulePause, of, fmt.Sprintf("Pod %s is replaced though zone %s is paused", pod.Name, set.Name))
		}
		switch most := e.maxUnavailable(g, set) - e.stricter; {
		case !own && len(down) > 0 && !metav1.IsControlledBy(pod, set):
			e.broken(b, RuleZones, of, fmt.Sprintf("Pod %s is replaced while Pod %s of zone %s is not ready", pod.Name, down[0].name, set.Name))
		case own && len(down)+1 > most:
			e.broken(b, RuleBudget, of, fmt.Sprintf("Pod %s is replaced while %d of at most %d Pods of zone %s are not ready", pod.Name, len(down), most, set.Name))
		}
	}
}

// maxUnavailable is how many Pods of a zone may be unavailable.
func (e *explorer) maxUnavailable(g *v1alpha1.RolloutGroup, set *appsv1.StatefulSet) int {
	replicas, limit := int(*set.Spec.Replicas), intstr.FromInt32(1)
	if value := vocabulary.RolloutMaxUnavailable.Get(set.Annotations); value != "" {
		limit = intstr.Parse(value)
	}
	if g != nil && g.Spec.MaxUnavailable != nil {
		limit = *g.Spec.MaxUnavailable
	}
	return atMost(&limit, replicas)
}

// atMost is a number, or a percentage of a total, rounded down, at least 1; without any it is 1.
func atMost(limit *intstr.IntOrString, total int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(limit, intstr.FromInt32(1)), total, false)
	if err != nil {
		return 1
	}
	return max(1, n)
}

// staged is a rollout with stages, as its object has it.
type staged struct {
	// stageOf is the place of the stage of a unit, most how many of a stage of so many may be unavailable.
	stageOf func(*Unit) int
	most    func(stage, total int) int
	has     func(*Unit) bool
	// loose reports whether a stage may begin though units of an earlier one are not ready with the change: they
	// may fail, or which they are does not follow from labels.
	loose bool
	// target is the name of what has the stages.
	target string
	stages []soaking
	// sizes are those of the first stages, of so many units, as long as these take a number of units.
	sizes func(total int) []int
}

// soaking is what the next stage waits for once the units of a stage are ready.
type soaking struct {
	name  string
	soak  time.Duration
	gates []v1alpha1.StageGate
}

// stagedOf returns the rollouts of a unit that have stages or a budget: that of a module, or one for each object of config that has
// changed.
func (e *explorer) stagedOf(b *branch, u *Unit) (all []*staged) {
	if u.Kind == clusterKind {
		return e.ofModule(b, u)
	}
	for _, o := range e.policies.uses[u.id()] {
		if p := e.policies.by(u, o); p != nil && p.Problem == "" {
			all = append(all, e.ofPolicy(p, o))
		}
	}
	return all
}

func (e *explorer) ofPolicy(p *policy.Policy, o content.Object) *staged {
	var stages []soaking
	for i := range p.Stages {
		stages = append(stages, soaking{p.Stages[i].Name, p.Stages[i].Soak, p.Stages[i].Gates})
	}
	return &staged{
		target: p.Name, stages: stages,
		stageOf: func(m *Unit) int { return p.Selected(labels.Set(m.Labels)) },
		most: func(stage, total int) int {
			if limit := p.Stages[stage].MaxUnavailable; limit.Set {
				return limit.Of(total)
			}
			return total
		},
		has:   func(m *Unit) bool { return e.policies.by(m, o) == p },
		loose: p.Tolerates() || slices.ContainsFunc(p.Stages, func(s policy.Stage) bool { return s.Size.Set }),
		sizes: func(total int) (sizes []int) {
			for i := range p.Stages {
				if s := &p.Stages[i]; !s.Size.Set || p.Tolerates() {
					break
				}
				sizes = append(sizes, p.Stages[i].Size.Of(total))
			}
			return sizes
		},
	}
}

// ofModule returns the rollout of a module, nil if it has none.
func (e *explorer) ofModule(b *branch, u *Unit) []*staged {
	_, m := moduleOf(b, u)
	if m == nil || m.Rollout == nil {
		return nil
	}
	r := m.Rollout
	var stages []soaking
	for i := range r.Stages {
		stage := soaking{name: r.Stages[i].Name, soak: time.Duration(r.Stages[i].SoakSeconds) * time.Second}
		for _, g := range r.Stages[i].Gates {
			reference := v1alpha1.GateReference{Name: g.Name, OnRefusal: v1alpha1.OnRefusal(g.OnRefusal)}
			stage.gates = append(stage.gates, v1alpha1.StageGate{GateReference: reference, When: v1alpha1.GateTime(g.When)})
		}
		stages = append(stages, stage)
	}
	return []*staged{{
		target: u.Part, stages: stages,
		stageOf: func(m *Unit) int { return stageOf(r, m.Labels) },
		most: func(stage, total int) int {
			if stage < len(r.Stages) && r.Stages[stage].MaxUnreadyClusters != nil {
				return atMost(r.Stages[stage].MaxUnreadyClusters, total)
			}
			return atMost(r.MaxUnreadyClusters, total)
		},
		has:   func(m *Unit) bool { return m.Rollout == u.Rollout && m.Namespace == u.Namespace },
		sizes: func(int) []int { return nil },
		loose: r.MaxFailures != nil || slices.ContainsFunc(r.Stages, func(s fleetv1.Stage) bool { return s.Clusters != nil || s.MaxFailures != nil }),
	}}
}

// tally counts the units of a rollout at the moment at which one of them gets what the change brings.
type tally struct {
	// all are its units, stage those of the same stage, begun those that have it already, done those of
	// them that are ready, and down those of the stage that are not.
	all, stage, begun, done, down int
	// since is when the last one of the stages before became ready with it.
	since record.Offset
	// early is a unit of an earlier stage that is not ready with it, nil if all are.
	early *Unit
}

// checkMove checks the order of stages, and the budget of the one that a unit is of. What was not ready before
// the change reached it takes no place: that is not because of the rollout.
func (e *explorer) checkMove(b *branch, u *move) {
	for _, r := range e.stagedOf(b, &u.Unit) {
		e.checkStage(b, r, u)
	}
}

func (e *explorer) checkStage(b *branch, r *staged, u *move) {
	of, n := e.rollouts[u.id()], e.tally(b, r, &u.Unit)
	if n.early != nil && !r.loose {
		e.broken(b, RuleOrder, of, fmt.Sprintf("%s gets the change before %s of an earlier stage is ready with it", &u.Unit, n.early))
	}
	e.checkSoak(b, r, u, &n)
	for i, before := range sums(r.sizes(n.all)) {
		if n.begun >= before && n.done < before {
			e.broken(b, RuleOrder, of, fmt.Sprintf("%s gets the change as one of %d units, before %d of them are ready with it (stage %d)", &u.Unit, n.begun+1, before, i+1))
		}
	}
	if most := r.most(r.stageOf(&u.Unit), n.stage) - e.stricter; u.wasReady && n.down+1 > most {
		e.broken(b, RuleBudget, of, fmt.Sprintf("%s gets the change while %d of at most %d are not ready", &u.Unit, n.down, most))
	}
}

// begun is a stage that has begun.
type begun struct {
	rollout record.Key
	target  string
	stage   int
}

// checkSoak checks what a stage has waited for that begins, where labels say which stage a unit is of.
func (e *explorer) checkSoak(b *branch, r *staged, u *move, n *tally) {
	stage := r.stageOf(&u.Unit)
	if r.loose || b.begun[begun{e.rollouts[u.id()], r.target, stage}] {
		return
	}
	for i, s := range r.stages[:min(stage+1, len(r.stages))] {
		if i == stage-1 && n.since+record.Offset(s.soak) > b.At() {
			e.broken(b, RuleSoak, e.rollouts[u.id()], fmt.Sprintf("%s gets the change before stage %s has soaked for %s", &u.Unit, s.name, s.soak))
		}
		for _, g := range s.gates {
			if (i < stage || g.When == v1alpha1.GateBefore) && !hasPassed(b, u.Namespace, r.target, s.name, g) {
				e.broken(b, RuleGates, e.rollouts[u.id()], fmt.Sprintf("%s gets the change before gate %s of stage %s has passed", &u.Unit, g.Name, s.name))
			}
		}
	}
}

// hasPassed reports whether a gate has passed, or is refused and that does not matter.
func hasPassed(b *branch, namespace, target, stage string, g v1alpha1.StageGate) bool {
	return slices.ContainsFunc(b.Store().Objects(&v1alpha1.RolloutGate{}, namespace), func(obj client.Object) bool {
		gate, ok := obj.(*v1alpha1.RolloutGate)
		if !ok || gate.Spec.TargetRef.Name != target || gate.Spec.Stage != stage || gate.Spec.Gate != g.Name || gate.Spec.When != string(cmp.Or(g.When, v1alpha1.GateAfter)) {
			return false
		}
		return apimeta.IsStatusConditionTrue(gate.Status.Conditions, v1alpha1.GatePassed) || g.OnRefusal == v1alpha1.RefusalContinue && apimeta.IsStatusConditionFalse(gate.Status.Conditions, v1alpha1.GatePassed)
	})
}

func (e *explorer) tally(b *branch, r *staged, u *Unit) (n tally) {
	stage := r.stageOf(u)
	units := e.units(b.Play)
	for i := range units {
		m := &units[i]
		if !e.goals.moves(m) || !r.has(m) {
			continue
		}
		n.all++
		if r.stageOf(m) < stage {
			n.since = max(n.since, b.ready[m.id()])
		}
		n.add(m, m.id() == u.id(), e.goals.has(m), b.sick[m.id()], r.stageOf(m)-stage)
	}
	return n
}

// add counts a unit: whether it is the one that moves, has what the change brings, and was not ready
// before; and how many stages it is after that one.
func (n *tally) add(m *Unit, itself, has, sick bool, after int) {
	ready := has && (m.Ready || sick)
	if after == 0 {
		n.stage++
	}
	if ready {
		n.done++
	}
	if itself {
		return
	}
	if has {
		n.begun++
	}
	if after < 0 && !ready && !sick && n.early == nil {
		n.early = m
	}
	if after == 0 && has && !ready {
		n.down++
	}
}

// sums are the sums of the first numbers of a list.
func sums(of []int) []int {
	all := slices.Clone(of)
	for i := 1; i < len(all); i++ {
		all[i] += all[i-1]
	}
	return all
}

// moduleOf returns the module of a unit and what it says, nil if there is none.
func moduleOf(b *branch, u *Unit) (client.Object, *fleetv1.ModuleSpec) {
	key := types.NamespacedName{Namespace: u.Namespace, Name: u.Part}
	if m, ok := b.Store().Object(&fleetv1.Module{}, key).(*fleetv1.Module); ok && u.Rollout == record.Reference(model.KindModule, u.Part) {
		return m, &m.Spec
	}
	if m, ok := b.Store().Object(&fleetv1.BootstrapModule{}, key).(*fleetv1.BootstrapModule); ok {
		return m, &m.Spec
	}
	return nil, nil
}

// checkPause checks that what gets the change is not paused.
func (e *explorer) checkPause(b *branch, u *move) {
	var paused string
	if _, m := moduleOf(b, &u.Unit); u.Kind == clusterKind && m != nil && m.Suspend {
		paused = u.Rollout
	}
	if p := e.policies.of(&u.Unit); p != nil && p.Pause != nil {
		paused = record.Reference(p.Kind, p.Name)
	}
	if u.isPaused {
		paused = u.String()
	}
	if paused != "" {
		e.broken(b, RulePause, e.rollouts[u.id()], fmt.Sprintf("%s gets the change though %s is paused", &u.Unit, paused))
	}
}

// checkRemovals checks how many clusters have lost a module by a write of the fleet's ring.
func (e *explorer) checkRemovals(b *branch, ring string, c simulate.Change) {
	if ring != record.RingFleet || c.Before == nil {
		return
	}
	var kept []Unit
	if c.After != nil {
		kept = ofCluster(c.After)
	}
	for _, u := range ofCluster(c.Before) {
		module, m := moduleOf(b, &u)
		if m == nil || module.GetDeletionTimestamp() != nil || e.goals.from[u.id()] == "" || slices.ContainsFunc(kept, func(k Unit) bool { return k.id() == u.id() }) {
			continue
		}
		had, left := e.countOf(e.had, &u), e.countOf(unitsOf(b.Play), &u)
		if most := mostRemoved(m.Rollout, had) - e.stricter; had-left > most {
			e.broken(b, RuleRemovals, record.KeyOf("", u.Namespace, u.Rollout), fmt.Sprintf("%d of %d clusters lose the module, and %d may without an approval", had-left, had, most))
		}
	}
}

// countOf counts the clusters that have the module of a unit, and had it when the change was made.
func (e *explorer) countOf(all []Unit, u *Unit) (n int) {
	for i := range all {
		if other := &all[i]; other.Rollout == u.Rollout && other.Namespace == u.Namespace && e.goals.from[other.id()] != "" {
			n++
		}
	}
	return n
}

// mostRemoved is how many of so many clusters may lose a module without an approval.
func mostRemoved(r *fleetv1.Rollout, total int) int {
	limit := intstr.FromString("10%")
	if r != nil && r.MaxRemoved != nil {
		limit = *r.MaxRemoved
	}
	if limit == intstr.FromInt32(0) || limit == intstr.FromString("0%") {
		return 0
	}
	return atMost(&limit, total)
}

// stageOf is the first stage that selects a cluster, and otherwise one after all of them.
func stageOf(r *fleetv1.Rollout, of map[string]string) int {
	for i := range r.Stages {
		selector, err := metav1.LabelSelectorAsSelector(r.Stages[i].Selector)
		if err == nil && (r.Stages[i].Selector == nil || selector.Matches(labels.Set(of))) {
			return i
		}
	}
	return len(r.Stages)
}

// checkState checks the rules of the user in a state.
func (e *explorer) checkState(ctx context.Context, b *branch) error {
	for _, rule := range e.Rules {
		holds, err := rule.holds(ctx, e, b)
		if err != nil {
			return err
		}
		if !holds {
			e.broken(b, rule.Name, record.Key{}, rule.Message)
		}
	}
	return nil
}
