package hub

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/rollout"
)

// Plan is what the ring is about to do, and what it waits for.
type Plan struct {
	rollout.Plan
	// Tree is what the engine decided upon; Aside are clusters that are not part of
	// the rollout, with their holds at the end of the plan's.
	Tree, Aside rollout.Observed
	// Writes are to be made in this order. There are none in a pass that permits.
	Writes []Write
	// Status is what the status of the module has to be, and Permits is true if it
	// has to be written before anything is done. It is always written with the
	// module's resourceVersion. Without Permits it comes last, and only if it
	// differs from what is there.
	Status  v1alpha1.ModuleStatus
	Permits bool
	// NeedsLive is true if what comes next must not be decided from a cache, which
	// may not know of all that others did. Observe again, live, and decide again.
	NeedsLive bool
}

// Act is a kind of write.
type Act string

// The acts.
const (
	// AddFinalizer and RemoveFinalizer are about the module itself.
	AddFinalizer    Act = "AddFinalizer"
	RemoveFinalizer Act = "RemoveFinalizer"
	// CreateRevision makes the ModuleRevision of the template; DeleteRevision takes
	// one away that nobody needs.
	CreateRevision Act = "CreateRevision"
	DeleteRevision Act = "DeleteRevision"
	// AdoptRevision makes one ours that says what the template does and belongs to
	// nobody: its module was deleted without it.
	AdoptRevision Act = "AdoptRevision"
	// Resolve notes in a ModuleRevision which commit or digest it turned out to be.
	Resolve Act = "Resolve"
	// CreateGate makes a RolloutGate for somebody to decide.
	CreateGate Act = "CreateGate"
	// Assign writes the sync of the module into the assemblage of a cluster, as a
	// move permits.
	Assign Act = "Assign"
	// Correct writes a sync anew that is not what its revision says; of one whose
	// revision is gone nothing but what becomes of what runs. It moves nothing to
	// another revision.
	Correct Act = "Correct"
	// Unassign removes the sync.
	Unassign Act = "Unassign"
)

// Write is something to do.
type Write struct {
	Act Act
	// Cluster is that of an assemblage, nil if there is none any more; Record is
	// what was seen of it, nil if there is no assemblage.
	Cluster *Cluster
	Record  *Record
	// Revision is what is assigned, made or deleted, AssignedAt since when.
	Revision   string
	AssignedAt time.Time
	// Number is for CreateRevision, Resolved and the UID of the revision for Resolve,
	// Stage and Gate for CreateGate.
	Number   int64
	Resolved string
	UID      types.UID
	Stage    string
	Gate     v1alpha1.Gate
	// Until is when it is too late for the write; zero for never.
	Until time.Time
}

// target is what is written to, by name.
func (w *Write) target() string {
	switch {
	case w.Record != nil:
		return w.Record.Cluster
	case w.Cluster != nil:
		return w.Cluster.Name
	case w.Act == CreateGate:
		return GateName(w.Revision, w.Stage, w.Gate)
	default:
		return w.Revision
	}
}

// Decide makes the plan for a module. Which cluster moves is the engine's
// decision; the rest is permitting it, doing it, and keeping the records straight.
func Decide(o Observed) Plan {
	o.Now = o.Now.Truncate(time.Microsecond) // as it comes back from the status
	d := decide(&o)
	p := Plan{Plan: d.plan, Tree: d.tree, Aside: d.rest, Status: o.Module.Status}
	if len(d.restPlan.Holds) > 0 {
		p.Holds = slices.Concat(d.plan.Holds, d.restPlan.Holds)
	}
	p.Wake = d.wake()
	if p.NeedsLive = !o.Live && (d.isBehind() || d.mayWithdraw()); p.NeedsLive {
		return p
	}
	if o.Module.Deleting {
		p.Writes, p.Status = d.dissolve(), d.deletingStatus()
		return p
	}
	if d.needsFinalizer() {
		p.Writes = []Write{{Act: AddFinalizer}}
		return p
	}
	if d.resolve(&p) {
		return p
	}
	if status, permits := d.permit(); permits {
		p.Permits, p.Status = true, *status
		return p
	}
	p.Writes, p.Status = d.acts(), d.status()
	return p
}

// decision is one module being decided upon.
type decision struct {
	o *Observed
	// problems are mistakes that stall the module.
	problems []string
	// wanted is the revision that the spec asks for, target the one to get to: the
	// good one, if what is wanted has failed. Good is the last that got everywhere.
	wanted, target, good string
	windowOpen           bool
	windowNext           time.Time
	// selector is nil if it cannot be understood.
	selector labels.Selector
	// known are all clusters by name, strays records of clusters that are not known.
	known  map[string]*member
	strays map[string]*Record
	// members are the clusters of the module, in order. Those aside belong to no
	// stage.
	members  []*member
	stages   []stage
	aside    []*member
	tree     rollout.Observed
	rest     rollout.Observed
	plan     rollout.Plan
	restPlan rollout.Plan
	// stagePlans are what the plan says of each stage.
	stagePlans []rollout.Plan
}

func decide(o *Observed) *decision {
	d := &decision{o: o}
	d.aim()
	d.understand()
	d.gather()
	d.tree = rollout.Observed{Now: o.Now, Self: o.Module.Name, Root: d.root()}
	d.rest = rollout.Observed{Now: o.Now, Self: o.Module.Name, Root: d.restRoot()}
	d.plan, d.restPlan = rollout.Decide(d.tree), rollout.Decide(d.rest)
	d.distribute()
	return d
}

// aim finds out which revision is wanted, and which to get to.
func (d *decision) aim() {
	m := &d.o.Module
	d.wanted = RevisionName(m.Kind, m.Name, m.template())
	if pin := m.Spec.TargetRevision; pin != "" {
		if d.wanted != pin && d.o.revision(pin) == nil {
			d.problems = append(d.problems, d.noSuchRevision(pin))
		}
		d.wanted = pin
	}
	d.target = d.wanted
	if good := m.Status.CurrentRevision; good == d.wanted || d.o.revision(good) != nil {
		d.good = good
	}
	if m.Status.RolledBack == d.wanted && d.good != "" {
		d.target = d.good
	}
}

func (d *decision) noSuchRevision(pin string) string {
	var names []string
	for i := range d.o.Revisions {
		names = append(names, d.o.Revisions[i].Name)
	}
	slices.Sort(names)
	return fmt.Sprintf("spec.targetRevision: %s has no revision %q; choose from %s", d.o.Module.Name, pin, strings.Join(names, ", "))
}

// understand reads what may be wrong in the spec though the API server accepts it.
func (d *decision) understand() {
	spec := &d.o.Module.Spec
	selector, err := metav1.LabelSelectorAsSelector(spec.Selector)
	if err != nil {
		d.problems = append(d.problems, "spec.selector: "+err.Error())
	}
	d.selector = selector
	open, next, err := opening(d.o.Module.rollout().Windows, d.o.Now)
	if err != nil {
		d.problems = append(d.problems, err.Error())
	}
	d.windowOpen, d.windowNext = open, next
}

// gather finds the clusters of the module and gives each its stage.
func (d *decision) gather() {
	selector := d.selector
	if selector == nil {
		selector = labels.Nothing()
	}
	d.findMembers(selector)
	d.order()
	for _, m := range d.members {
		d.look(m)
	}
	if err := d.assign(); err != nil {
		d.problems = append(d.problems, err.Error())
	}
	if d.o.Module.rollout().UnmatchedClusters == v1alpha1.UnmatchedFail {
		d.complainOfUnmatched()
	}
}

func (d *decision) complainOfUnmatched() {
	var names []string
	for _, m := range d.aside {
		if m.stage == unmatched {
			names = append(names, m.Name)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		d.problems = append(d.problems, fmt.Sprintf("spec.rollout.stages: %d clusters belong to no stage, %s among them; "+
			"label them, add a stage, or set unmatchedClusters", len(names), names[0]))
	}
}

// distribute tells each member, and each stage, what the plan says of it. Holds
// come in the order of the tree.
func (d *decision) distribute() {
	holds := d.plan.Holds
	for _, m := range d.newcomers() {
		m.hold, holds = take(holds, m.Name, 2)
	}
	_, holds = take(holds, unitStages, 1)
	d.stagePlans = make([]rollout.Plan, len(d.stages))
	for i := range d.stages {
		rest := holds
		_, holds = take(holds, d.stages[i].name, 2)
		for _, m := range d.stages[i].members {
			if !m.isNew {
				m.hold, holds = take(holds, m.Name, 3)
			}
		}
		d.stagePlans[i].Holds = rest[:len(rest)-len(holds)]
	}
	rest := d.restPlan.Holds
	for _, m := range d.inOrderAside() {
		m.hold, rest = take(rest, m.Name, 2)
	}
	d.distributeSteps()
}

func (d *decision) newcomers() []*member {
	var fresh []*member
	for i := range d.stages {
		for _, m := range d.stages[i].members {
			if m.isNew {
				fresh = append(fresh, m)
			}
		}
	}
	return fresh
}

// inOrderAside are those aside, in the order of the tree.
func (d *decision) inOrderAside() []*member {
	aside := slices.Clone(d.aside)
	slices.SortStableFunc(aside, func(a, b *member) int { return a.stage - b.stage }) // pinned come first
	return aside
}

// take is the next hold if it is of a unit, and those after it.
func take(holds []rollout.Hold, name string, depth int) (*rollout.Hold, []rollout.Hold) {
	if len(holds) > 0 && len(holds[0].Path) == depth && holds[0].Path[depth-1] == name {
		return &holds[0], holds[1:]
	}
	return nil, holds
}

func (d *decision) distributeSteps() {
	for _, step := range d.plan.Steps {
		m := d.member(step.Path[len(step.Path)-1])
		m.moves = true
		if m.stage >= 0 && !m.isNew {
			d.stagePlans[m.stage].Steps = append(d.stagePlans[m.stage].Steps, step)
		}
	}
}

// isPaused is true while nothing may be assigned or taken away.
func (d *decision) isPaused() bool { return d.o.Module.Spec.Suspend || len(d.problems) > 0 }

// wake is when time alone changes something: by the engine, or because a move runs
// out, or a refused write is tried again.
func (d *decision) wake() time.Time {
	wake := d.plan.Wake
	sooner := func(at time.Time) {
		if at.After(d.o.Now) {
			wake = earlier(wake, at)
		}
	}
	for i := range d.o.Module.Status.Moves {
		if m := &d.o.Module.Status.Moves[i]; !isDone(m, d.record(m.Cluster)) {
			sooner(m.At.Add(ActWithin))
			sooner(m.At.Add(WithdrawAfter))
		}
	}
	for _, r := range d.o.Refusals {
		sooner(r.At)
	}
	return wake
}
