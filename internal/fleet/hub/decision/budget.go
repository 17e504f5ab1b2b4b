package decision

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// Modules that share a budget note in it which clusters they are updating, each in an entry of its own, by
// compare-and-swap, before they permit a move. What was noted names the assemblage as it was then, and permits moves of
// that alone. So it can be taken back once a view that is not older shows another one, in which the module is
// settled: no move that it permitted can be made any more, by whichever hub it was permitted. Where nothing comes of it, the
// assemblage is changed first, as for a move that is withdrawn.

const (
	// maxNoted is how many clusters may be noted in a budget, so that its status stays small.
	maxNoted = 2000
	// notedShown is how many of them a message names.
	notedShown = 3
)

// shared is a budget as one module sees it.
type shared struct {
	*model.Budget

	// applies is true if the module shares it now.
	applies bool
	// own is what the module has noted, nil if nothing.
	own      *spillway.BudgetModule
	clusters labels.Selector
	// problem is why no cluster may be updated, empty if that is not so; until is when that is tried again.
	problem string
	until   time.Time
	// updating are the modules on each cluster, groups the clusters of each group, with those that are
	// unknown in all of them: everywhere.
	updating   map[string][]sharer
	groups     map[string][]string
	everywhere []string
}

// sharer is a module that is updating a cluster.
type sharer struct {
	name         string
	mine, failed bool
	// waits is true of one that depends on the module.
	waits bool
}

// readBudgets finds the budgets that matter to the module, and who is updating what.
func (d *decision) readBudgets() {
	m := &d.o.Module
	for i := range d.o.Budgets {
		b := &d.o.Budgets[i]
		s := &shared{Budget: b, own: b.Noted(m.Kind, m.Name), updating: map[string][]sharer{}, groups: map[string][]string{}}
		d.readSharers(s)
		if !s.applies && s.own == nil {
			continue
		}
		for j := range b.Modules {
			d.readNoted(s, &b.Modules[j])
		}
		d.readBegun(s)
		d.budgets = append(d.budgets, s)
	}
}

// readSharers finds out whether the module shares a budget, and whether all that do have noted their clusters.
func (d *decision) readSharers(s *shared) {
	for _, problem := range BudgetProblems(&s.Spec) {
		s.problem = cmp.Or(s.problem, problem+"; correct it")
	}
	modules, _ := selectorOr(s.Spec.Modules, "")
	s.clusters, _ = selectorOr(s.Spec.Clusters, "")
	for _, other := range d.o.Sharers {
		if !modules.Matches(labels.Set(other.Labels)) {
			continue
		}
		mine := other.Kind == d.o.Module.Kind && other.Name == d.o.Module.Name
		s.applies = s.applies || mine
		if noted := s.Noted(other.Kind, other.Name); !mine && (noted == nil || noted.ObservedGeneration != s.Generation) {
			s.problem = cmp.Or(s.problem, other.Kind+" "+other.Name+" has not noted yet which clusters it is updating")
		}
	}
	if d.isPutOff(budgetTarget(s.Budget)) {
		r := d.o.Refusals[budgetTarget(s.Budget)]
		s.until, s.problem = r.At, cmp.Or(s.problem, "it cannot be noted which clusters are updated: "+model.Short(r.Reason, model.SaidLength))
	}
}

// BudgetProblems are the mistakes in a ClusterBudget, each with its field. While there is one, its modules update nothing.
func BudgetProblems(spec *spillway.ClusterBudgetSpec) []string {
	_, modules := selectorOr(spec.Modules, "spec.modules")
	_, clusters := selectorOr(spec.Clusters, "spec.clusters")
	problems := []string{modules, clusters}
	if spec.MaxClusters == nil && spec.MaxModulesPerCluster == nil {
		problems = append(problems, "spec: one of maxClusters and maxModulesPerCluster must be set")
	}
	if spec.GroupBy != nil && spec.MaxClusters == nil {
		problems = append(problems, "spec.groupBy: it requires maxClusters, which is the budget of each group")
	}
	return slices.DeleteFunc(problems, func(p string) bool { return p == "" })
}

// selectorOr is everything without a selector, and everything where there is a problem with it.
func selectorOr(selector *metav1.LabelSelector, path string) (labels.Selector, string) {
	if selector == nil {
		return labels.Everything(), ""
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return labels.Everything(), path + ": " + err.Error()
	}
	return s, ""
}

// readNoted counts what a module has noted.
func (d *decision) readNoted(s *shared, noted *spillway.BudgetModule) {
	m := &d.o.Module
	as := sharer{name: noted.Kind + " " + noted.Name, mine: noted.Kind == m.Kind && noted.Name == m.Name}
	for i := range noted.Clusters {
		c := &noted.Clusters[i]
		if as.mine && !d.keepsPlace(c) {
			continue
		}
		as.failed, as.waits = c.Failed, noted.Kind == m.Kind && s.waitsFor(noted, c.Name, m.Name)
		s.count(d.known[c.Name], c.Name, as)
	}
}

// readBegun counts what the module is updating and has not noted: it began before the budget existed.
func (d *decision) readBegun(s *shared) {
	for _, members := range []map[string]*member{d.known, d.absent} {
		for name, m := range members {
			if s.applies && s.concerns(m) && notedOf(s.own, name) == nil && d.isUpdating(m) {
				s.count(m, name, sharer{name: d.o.Module.Kind + " " + d.o.Module.Name, mine: true})
			}
		}
	}
}

// keepsPlace is true of a cluster that the module has noted and need not note again.
func (d *decision) keepsPlace(c *spillway.BudgetCluster) bool {
	m := d.find(c.Name)
	return d.isBehindNoted(c) || m != nil && (d.isUpdating(m) || isAsNoted(c, m))
}

// waitsFor is true of a module that needs another one on a cluster: it depends on that, or on what does and is
// updating there itself. It would wait for that for ever if that waited for it.
func (s *shared) waitsFor(noted *spillway.BudgetModule, cluster, name string) bool {
	if len(noted.DependsOn) == 0 {
		return false
	}
	reached, next := map[string]bool{}, []*spillway.BudgetModule{noted}
	for len(next) > 0 {
		at := next[0]
		next = next[1:]
		if at == nil || reached[at.Name] || !slices.ContainsFunc(at.Clusters, func(c spillway.BudgetCluster) bool { return c.Name == cluster }) {
			continue
		}
		if reached[at.Name] = true; slices.Contains(at.DependsOn, name) {
			return true
		}
		for _, on := range at.DependsOn {
			next = append(next, s.Noted(noted.Kind, on))
		}
	}
	return false
}

// count adds that a module is updating a cluster; m is nil if the cluster is unknown.
func (s *shared) count(m *member, name string, as sharer) {
	first := len(s.updating[name]) == 0
	s.updating[name] = append(s.updating[name], as)
	switch {
	case !first:
	case m == nil:
		s.everywhere = append(s.everywhere, name)
	case s.concerns(m):
		s.groups[s.group(m)] = append(s.groups[s.group(m)], name)
	}
}

// concerns is true of a cluster of which there is a budget.
func (s *shared) concerns(m *member) bool { return s.clusters.Matches(labels.Set(m.Labels)) }

func (s *shared) group(m *member) string {
	if s.Spec.GroupBy == nil {
		return ""
	}
	return m.Labels[s.Spec.GroupBy.LabelKey]
}

// budgetTarget is what a budget is called.
func budgetTarget(b *model.Budget) string { return "ClusterBudget " + b.Name }

// crowded is why the module may not begin to update a cluster now, nil if it may.
func (d *decision) crowded(m *member) *rollout.Block {
	for _, s := range d.budgets {
		if !s.applies || !s.concerns(m) {
			continue
		}
		why := cmp.Or(s.problem, s.whyModules(m), d.whyClusters(s, m))
		if why != "" {
			return &rollout.Block{Reason: ReasonClusterBudget, Message: budgetTarget(s.Budget) + ": " + why, Until: s.until}
		}
	}
	return nil
}

// whyModules is that too many other modules are updating a cluster. For what is down already those do not count
// that have failed: it may be because of it.
func (s *shared) whyModules(m *member) string {
	if s.Spec.MaxModulesPerCluster == nil {
		return ""
	}
	others := slices.DeleteFunc(slices.Clone(s.updating[m.Name]), func(o sharer) bool { return o.mine || o.waits || o.failed && m.isDown() })
	if allowed := int(*s.Spec.MaxModulesPerCluster); len(others) >= allowed {
		return fmt.Sprintf("%d of %d allowed updating on it (%s)", len(others), allowed, sentenceOf(others))
	}
	return ""
}

// whyClusters is that too many clusters of a group are updating. One that the module is updating already takes no other place,
// nor does one that is down. That another module is noted on the cluster does not suffice: it may have been, in an old view.
func (d *decision) whyClusters(s *shared, m *member) string {
	if len(s.updating) >= maxNoted && len(s.updating[m.Name]) == 0 {
		return fmt.Sprintf("%d clusters are updating, and no more can be noted", len(s.updating))
	}
	if s.Spec.MaxClusters == nil || m.isDown() || d.isUpdating(m) {
		return ""
	}
	group := slices.DeleteFunc(slices.Concat(s.groups[s.group(m)], s.everywhere), func(name string) bool { return name == m.Name })
	allowed := int(*s.Spec.MaxClusters)
	if len(group) < allowed {
		return ""
	}
	in := ""
	if by := s.Spec.GroupBy; by != nil {
		in = " with " + by.LabelKey + "=" + s.group(m)
	}
	slices.Sort(group)
	shown := make([]string, 0, notedShown+1)
	for _, name := range group[:min(len(group), notedShown)] {
		shown = append(shown, name+": "+sentenceOf(s.updating[name]))
	}
	if more := len(group) - notedShown; more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%d of %d clusters allowed updating%s (%s)", len(group), allowed, in, strings.Join(shown, ", "))
}

func sentenceOf(sharers []sharer) string {
	words := make([]string, len(sharers))
	for i, s := range sharers {
		if words[i] = s.name; s.failed {
			words[i] += " has failed"
		}
	}
	return strings.Join(words, " and ")
}

// isDown is true of a cluster that has the module and does not run it: nothing is taken away from it.
func (m *member) isDown() bool { return m.isAssigned() && !m.isUp() }

// choosePlaces chooses which clusters the module may begin to update, of those that it is to.
func (d *decision) choosePlaces() {
	d.claims = map[string]bool{}
	if len(d.budgets) == 0 || d.isPaused() || d.o.Module.IsExternal() || d.o.Module.Deleting {
		return
	}
	most := maxMoves - len(d.intents.Kept())
	for _, step := range d.plan.Steps {
		m := d.known[step.Path[len(step.Path)-1]]
		if len(d.claims) >= most || takesNoPlace(m, step.To) || m.record == nil || d.o.Foreign[m.Name] || d.isPutOff(m.Name) || d.crowded(m) != nil {
			continue
		}
		d.claims[m.Name] = true
		for _, s := range d.budgets {
			s.count(m, m.Name, sharer{mine: true})
		}
	}
}

// takesNoPlace is true of a cluster that has joined: as in the budgets of the module.
func takesNoPlace(m *member, to string) bool { return m.isNew && to != rollout.Removed }

// isNoted is true if every budget has it that the module may move a cluster as it is.
func (d *decision) isNoted(m *member, to string) bool {
	return takesNoPlace(m, to) || !slices.ContainsFunc(d.budgets, func(s *shared) bool {
		return s.applies && s.concerns(m) && !isAsNoted(notedOf(s.own, m.Name), m)
	})
}

func notedOf(own *spillway.BudgetModule, name string) *spillway.BudgetCluster {
	if own == nil {
		return nil
	}
	i := slices.IndexFunc(own.Clusters, func(c spillway.BudgetCluster) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &own.Clusters[i]
}

// isAsNoted is true if an assemblage is as it was, so that a move may be made at any moment.
func isAsNoted(c *spillway.BudgetCluster, m *member) bool {
	return c != nil && m != nil && m.record != nil && m.record.UID == c.UID && m.record.Generation == c.Generation && m.record.Fence == c.Fence
}

// isUpdating is true of a cluster that keeps its place: what was assigned or removed there is not settled.
func (d *decision) isUpdating(m *member) bool {
	switch r := m.record; {
	case m.move != nil, m.isLeaving():
		return true
	case r == nil || !r.Assigned || m.isHeld() || m.isNew:
		return false
	case r.HasSucceeded():
		return m.belongs && d.isSoaking(m)
	case d.gone && r.Reported && r.State == v1alpha1.StateFailed: // no owner is left to correct it
		return false
	default:
		return !r.Proven && !d.isTolerated(m)
	}
}

// isTolerated is true of a failure that takes no place in the budgets of the module either.
func (d *decision) isTolerated(m *member) bool {
	if !m.belongs || m.stage < 0 || !m.hasFailed() {
		return false
	}
	s, failed := &d.stages[m.stage], 0
	for _, other := range s.members {
		failed += one(other.hasFailed())
	}
	return d.onFailure() == rollout.Continue || failed <= ring.LimitOf(maxFailures(&s.spec, d.o.Module.Rollout())).Of(len(s.members))
}

// isBehindNoted is true if this view does not show an assemblage as it was noted.
func (d *decision) isBehindNoted(c *spillway.BudgetCluster) bool {
	return ring.IsBehind(d.o.AsOf, c.ResourceVersion)
}

// withdraw changes the assemblages that are noted and that nothing is to be done with any more.
func (d *decision) withdraw() []Write {
	var writes []Write
	fenced := map[string]bool{}
	for _, s := range d.budgets {
		for i := range s.ownClusters() {
			c := &s.own.Clusters[i]
			m := d.find(c.Name)
			if !isAsNoted(c, m) || fenced[c.Name] || d.isClaimed(s, m) || d.isUpdating(m) || d.isBehindNoted(c) || d.isPutOff(c.Name) {
				continue
			}
			fenced[c.Name] = true
			writes = append(writes, Write{Act: Fence, Cluster: m.Cluster, Record: m.record})
		}
	}
	return writes
}

func (s *shared) ownClusters() []spillway.BudgetCluster {
	if s.own == nil {
		return nil
	}
	return s.own.Clusters
}

// budgetNotes write what the module is updating into the budgets that do not say so, in the order of their names: so
// no two modules wait for what the other one has noted first. What is taken back is seen by all before
// anything else is noted, so that those that wait may be faster.
func (d *decision) budgetNotes() []Write {
	var writes []Write
	released := slices.ContainsFunc(d.budgets, func(s *shared) bool {
		return slices.ContainsFunc(s.ownClusters(), func(c spillway.BudgetCluster) bool { return d.isOver(s, &c) })
	})
	for _, s := range d.budgets {
		if note := d.note(s, !released); !equality.Semantic.DeepEqual(note, s.own) && !d.isPutOff(budgetTarget(s.Budget)) {
			writes = append(writes, Write{Act: Note, Budget: s.Budget, Note: note})
		}
	}
	return writes
}

// isOver is true of what was noted and can be taken back.
func (d *decision) isOver(s *shared, c *spillway.BudgetCluster) bool {
	m := d.find(c.Name)
	return !d.isBehindNoted(c) && !isAsNoted(c, m) && !d.isClaimed(s, m) && (m == nil || !d.isUpdating(m))
}

// isClaimed is true of a cluster that the module may begin to update, by this budget too.
func (d *decision) isClaimed(s *shared, m *member) bool {
	return m != nil && s.applies && d.claims[m.Name] && s.concerns(m)
}

// note is what the module has to note in a budget, nil if nothing.
func (d *decision) note(s *shared, claims bool) *spillway.BudgetModule {
	m := &d.o.Module
	note := &spillway.BudgetModule{Kind: m.Kind, Name: m.Name}
	switch {
	case s.applies:
		note.ObservedGeneration, note.DependsOn = s.Generation, m.Template().Sync.DependsOn
	case s.own != nil:
		note.ObservedGeneration, note.DependsOn = s.own.ObservedGeneration, s.own.DependsOn
	}
	for _, name := range d.named(s.own) {
		if c := d.noteCluster(s, name, claims); c != nil {
			note.Clusters = append(note.Clusters, *c)
		}
	}
	if !s.applies && len(note.Clusters) == 0 {
		return nil
	}
	return note
}

// named are the clusters of which something is known, in the order of their names.
func (d *decision) named(own *spillway.BudgetModule) []string {
	names := make([]string, 0, len(d.known)+len(d.absent))
	for name := range d.known {
		names = append(names, name)
	}
	for name := range d.absent {
		names = append(names, name)
	}
	if own != nil {
		for i := range own.Clusters {
			names = append(names, own.Clusters[i].Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// noteCluster is what is to be noted of a cluster, nil if nothing.
func (d *decision) noteCluster(s *shared, name string, claims bool) *spillway.BudgetCluster {
	c, m := notedOf(s.own, name), d.find(name)
	claimed := d.isClaimed(s, m)
	switch {
	case claimed && claims && !isAsNoted(c, m) && (c == nil || !d.isBehindNoted(c)):
		return noteOf(m)
	case c != nil && d.isOver(s, c):
		return nil
	case c != nil:
		kept := *c
		kept.Failed = m != nil && m.hasFailed() && !claimed
		return &kept
	case m != nil && s.applies && s.concerns(m) && d.isUpdating(m) && !d.o.Module.Deleting: // it began before the budget existed
		begun := noteOf(m)
		begun.Failed = m.hasFailed()
		return begun
	default:
		return nil
	}
}

func noteOf(m *member) *spillway.BudgetCluster {
	c := &spillway.BudgetCluster{Name: m.Name}
	if r := m.record; r != nil {
		c.UID, c.Generation, c.Fence, c.ResourceVersion = r.UID, r.Generation, r.Fence, r.ResourceVersion
	}
	return c
}

// Leave is what is left to do once a module is gone: it gives back its places of the budgets that it has shared, when what it was
// updating is settled.
func Leave(o model.Observed) Plan {
	d := &decision{o: &o, gone: true, claims: map[string]bool{}}
	d.joinRecords()
	d.readBudgets()
	return Plan{Writes: append(d.withdraw(), d.budgetNotes()...)}
}
