package decision

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/fluxspec"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/replay"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/window"
	"github.com/spillway-dev/spillway/rollout"
)

// decision is one module being decided upon.
type decision struct {
	o *model.Observed
	// problems are mistakes that stall the module.
	problems []string
	// wanted is the revision that the spec asks for, target the one to get to: the
	// good one, if what is wanted has failed. Good is the last that got everywhere.
	wanted, target, good string
	windowOpen           bool
	windowNext           time.Time
	// windowCloses is when the first one that is open closes, zero if none is.
	windowCloses time.Time
	// selector is nil if it cannot be understood.
	selector labels.Selector
	// known are all clusters by name, absent those that are not known and have a record or a
	// move; unknown are those of them that may be down.
	known, absent map[string]*member
	unknown       []*member
	// members are the clusters of the module, in order. Those aside belong to no
	// stage.
	members []*member
	stages  []stage
	// removals are the clusters that lose the module. Approval is what a user has to give
	// for all of them, approved how many may go with the approval that was given, those
	// included that are leaving, and approvedLeft how many are left of it.
	removals               []removal
	approval               string
	approved, approvedLeft int
	aside                  []*member
	tree                   rollout.Observed
	rest                   rollout.Observed
	plan                   rollout.Plan
	restPlan               rollout.Plan
	// varies is true if a revision may differ from cluster to cluster.
	varies bool
	// checks are those of the module. Asks are the clusters that are to be asked what they serve, and
	// askAgain is when one of the others is.
	checks   []check
	asks     []string
	askAgain time.Time
	intents  *ring.Intents[v1alpha1.Move]
	// budgets are those that the module shares with others, claims the clusters that it may begin to update by them; gone is
	// true of a module that does not exist any more.
	budgets []*shared
	claims  map[string]bool
	gone    bool
	// stagePlans are what the plan says of each stage.
	stagePlans []rollout.Plan
}

func decide(o *model.Observed) *decision {
	d := &decision{o: o, varies: slices.ContainsFunc(o.Revisions, func(r model.Revision) bool { return r.Variants.Varies() })}
	d.chooseTarget()
	d.validate()
	d.intents = d.moves()
	d.groupMembers()
	d.readBudgets()
	d.tree = rollout.Observed{Now: o.Now, Self: o.Module.Name, Root: d.root()}
	d.rest = rollout.Observed{Now: o.Now, Self: o.Module.Name, Root: d.restRoot()}
	of := o.Module.Kind + " " + o.Module.Namespace + "/" + o.Module.Name
	d.plan, d.restPlan = replay.Decide(of, d.tree), replay.Decide("new clusters of "+of, d.rest)
	d.distribute()
	d.choosePlaces()
	return d
}

// chooseTarget finds out which revision is wanted, and which is rolled out.
func (d *decision) chooseTarget() {
	m := &d.o.Module
	d.wanted = model.RevisionName(m.Kind, m.Name, m.Template())
	if pin := m.Spec.TargetRevision; pin != "" {
		if d.wanted != pin && d.o.Revision(pin) == nil {
			d.problems = append(d.problems, d.noSuchRevision(pin))
		}
		d.wanted = pin
	}
	d.target = d.wanted
	if good := m.Status.CurrentRevision; good == d.wanted || d.o.Revision(good) != nil {
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
	return fmt.Sprintf("spec.targetRevision: %s has no revision %s; choose from %s", d.o.Module.Name, message.Quote(pin), strings.Join(names, ", "))
}

// validate finds what may be wrong in the spec though the API server accepts it.
func (d *decision) validate() {
	spec := &d.o.Module.Spec
	selector, err := metav1.LabelSelectorAsSelector(spec.Selector)
	if err != nil {
		d.problems = append(d.problems, "spec.selector: "+err.Error())
	}
	d.selector = selector
	template, path := d.o.Module.Template(), d.o.Module.TemplatePath()
	d.problems = append(d.problems, fluxspec.Problems(path, template.Sync.Source, template.Sync.Package, &template.Sync.SyncOptions)...)
	d.problems = append(d.problems, model.OverrideProblems(strings.TrimSuffix(path, ".sync"), &template)...)
	if slices.Contains(template.Sync.DependsOn, d.o.Module.Name) {
		d.problems = append(d.problems, path+".dependsOn: the module cannot depend on itself")
	}
	d.compileChecks()
	windows, err := parseWindows(d.o.Module.Rollout().Windows)
	if err != nil {
		d.problems = append(d.problems, err.Error())
	}
	d.windowOpen, d.windowNext = window.Opening(windows, d.o.Now)
	for _, w := range windows {
		d.windowCloses = ring.Earlier(d.windowCloses, w.Closes(d.o.Now))
	}
}

// groupMembers finds the clusters of the module and gives each its stage.
func (d *decision) groupMembers() {
	selector := d.selector
	if selector == nil {
		selector = labels.Nothing()
	}
	d.findMembers(selector)
	d.order()
	for _, m := range d.members {
		d.assess(m)
	}
	if err := d.assign(); err != nil {
		d.problems = append(d.problems, err.Error())
	}
	if d.o.Module.Rollout().UnmatchedClusters == v1alpha1.UnmatchedFail {
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
		for _, m := range d.unknownIn(i) {
			m.hold, holds = take(holds, m.Name, 3+len(d.stages))
		}
		d.stagePlans[i].Holds = rest[:len(rest)-len(holds)]
	}
	d.distributeOthers(holds)
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
		m := d.known[step.Path[len(step.Path)-1]]
		m.moves = true
		if step.To != rollout.Removed && m.stage >= 0 && !m.isNew {
			d.stagePlans[m.stage].Steps = append(d.stagePlans[m.stage].Steps, step)
		}
	}
}

// distributeOthers tells each cluster that loses the module, or is unknown, what the plan
// says of it.
func (d *decision) distributeOthers(holds []rollout.Hold) {
	for i := range holds {
		if h := &holds[i]; len(h.Path) > 1 && (h.Path[0] == unitRemovals || h.Path[0] == unitUnready || h.Path[0] == unitUnknown) {
			d.find(h.Path[len(h.Path)-1]).hold = h
		}
	}
}

// isPaused is true while nothing may be assigned or taken away.
func (d *decision) isPaused() bool { return d.o.Module.Spec.Suspend || len(d.problems) > 0 }

// wake is when time alone changes something: by the engine, or because a move runs
// out, or a refused write is tried again.
func (d *decision) wake() time.Time {
	return ring.Earlier(ring.Earlier(ring.Earlier(d.plan.Wake, d.askAgain), d.intents.Wake()), ring.Earlier(d.o.Refusals.Wake(d.o.Now), d.wakeForRemovals()))
}

// parseWindows returns no window if one of them is wrong.
func parseWindows(windows []v1alpha1.Window) ([]window.Window, error) {
	parsed := make([]window.Window, len(windows))
	for i := range windows {
		var err error
		if parsed[i], err = parseWindow(&windows[i]); err != nil {
			return nil, fmt.Errorf("spec.rollout.windows[%d].%w", i, err)
		}
	}
	return parsed, nil
}

// parseWindow says of a mistake in which field it is.
func parseWindow(w *v1alpha1.Window) (window.Window, error) {
	parsed, err := window.Parse(w.Schedule, time.Duration(w.DurationSeconds)*time.Second, w.TimeZone)
	switch {
	case errors.Is(err, window.ErrTimeZone):
		return parsed, fmt.Errorf("timeZone: %s %w", message.Quote(w.TimeZone), err)
	case err != nil:
		return parsed, fmt.Errorf("schedule: %s %w", message.Quote(w.Schedule), err)
	default:
		return parsed, nil
	}
}
