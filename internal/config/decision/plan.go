package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/replay"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// Plan is what the ring is about to do, and why the rest is waiting.
type Plan struct {
	rollout.Plan
	// Writes are at most one for each workload, in the order to make them.
	Writes []Write
	// Budget is what the record of the manager must say before they are made.
	Budget *Budget
	// Workloads are those that were observed, with what was found out about them.
	Workloads []Workload
	// Records are the writes of what has failed. They come before all others.
	Records []RecordWrite
	// Gates are the writes of RolloutGates.
	Gates []GateWrite
	// Reports are what there is to say of policies.
	Reports map[*policy.Policy]*policy.Report
}

// Decide makes the plan: the engine decides what rolls, and the rest of the writes
// keep the records up to date.
func Decide(o Observed, options Options) Plan {
	o, plan := decide(o, options)
	var again time.Time
	plan.Records, again = o.recordWrites(&plan, options.RecordEvery)
	plan.Records = append(o.adoptions(), plan.Records...)
	plan.Wake = ring.Earlier(plan.Wake, again)
	place := plan.places()
	var records []Write
	for i := range o.Workloads {
		w := &o.Workloads[i]
		plan.Wake = ring.Earlier(plan.Wake, w.wake(o.Now))
		_, steps := place[w.Name]
		switch {
		case w.putOff(o.Now):
		case steps:
			plan.Writes = append(plan.Writes, step(w, o.Now))
		default:
			records = append(records, record(w, o.Now)...)
		}
	}
	slices.SortFunc(plan.Writes, func(a, b Write) int { return place[a.Workload.Name] - place[b.Workload.Name] })
	plan.Budget = o.After(plan.Writes, options)
	plan.Writes = append(plan.Writes, records...)
	return plan
}

// Laggards are the workloads that are not up to date, and why, of a ring that is played: what is said of a
// cluster is what its manager has recorded.
func Laggards(o Observed, options Options) []Laggard {
	o, plan := decide(o, options)
	return plan.laggards(&o)
}

// lasts is when a workload comes to an age after its roll at which it is judged in another way, zero
// for never.
func (w *Workload) lasts(now time.Time) time.Time {
	if w.Records.Roll.At.IsZero() && w.Rolled.IsZero() && w.Records.Roll.Admitted.IsZero() {
		return time.Time{}
	}
	at, started := w.Records.Roll.At, w.startedAt()
	return ring.Soonest(now, at, started, started.Add(workload.SettlesWithin(w.Object)), at.Add(workload.ProgressDeadline), at.Add(workload.TimeToRoll(w.Object)), at.Add(workload.SettlesWithin(w.Object)),
		w.Rolled, w.Rolled.Add(workload.ProgressDeadline), workload.StallsAt(w.Object))
}

// decide is what was judged, and what the engine decides about it.
func decide(o Observed, options Options) (Observed, Plan) {
	o = brake(judge(o, options), options)
	o, staged := stage(o, options)
	o = unstick(o, options)
	plan := Plan{Plan: replay.Decide("config", tree(o, options)), Workloads: o.Workloads, Reports: staged.report(), Gates: staged.gateWrites()}
	plan.Wake = ring.Earlier(ring.Earlier(plan.Wake, staged.plan.Wake), o.wakeForGone())
	return o, plan
}

// places are the places of the workloads in the order of the steps.
func (p *Plan) places() map[workload.Name]int {
	place := make(map[workload.Name]int, len(p.Steps))
	for i := range p.Steps {
		if name, ok := At(p.Steps[i].Path); ok {
			place[name] = i
		}
	}
	return place
}

// tree is the input of the engine: the workloads that are not up to date, and those
// that are rolling, in their namespaces.
func tree(o Observed, options Options) rollout.Observed {
	alone := rollout.Unit{Name: alone, Group: true, Policy: rollout.Policy{
		MaxUnavailable: limit(options.MaxRolling),
		Rate:           rate(o, options),
		Shared:         share(o.Budget),
		OnFailure:      rollout.Continue,
	}}
	ranks := o.ranks()
	zones := rollout.Unit{Name: inGroups, Group: true, Policy: rollout.Policy{OnFailure: rollout.Continue}}
	slow := rollout.Unit{Name: late, Group: true, Policy: rollout.Policy{OnFailure: rollout.Continue}}
	for i := range o.Workloads {
		w := &o.Workloads[i]
		unit, ok := w.unit(o.Now, options)
		unit.Leaf.Priority = ranks[i]
		switch {
		case !ok:
		case w.isSlow(o.Now):
			addTo(&slow, w.Namespace, rollout.Limit{}, unit)
		case w.Zone.Group != "":
			addTo(&zones, w.Namespace, rollout.Limit{}, unit)
		default:
			addTo(&alone, w.Namespace, limit(options.MaxRollingPerNamespace), unit)
		}
	}
	return rollout.Observed{Now: o.Now, Root: rollout.Unit{
		Children: []rollout.Unit{alone, zones, slow},
		Policy:   rollout.Policy{Deadline: workload.ProgressDeadline, OnFailure: rollout.Continue},
	}}
}

// addTo adds a workload to its namespace. Workloads are sorted by namespace.
func addTo(parent *rollout.Unit, namespace string, budget rollout.Limit, unit rollout.Unit) {
	last := len(parent.Children) - 1
	if last < 0 || parent.Children[last].Name != namespace {
		parent.Children = append(parent.Children, rollout.Unit{
			Name: namespace, Policy: rollout.Policy{MaxUnavailable: budget, OnFailure: rollout.Continue},
		})
		last++
	}
	parent.Children[last].Children = append(parent.Children[last].Children, unit)
}

func limit(n int) rollout.Limit {
	if n <= 0 {
		return rollout.Limit{}
	}
	return rollout.Number(n)
}

// The parts of the tree: workloads that roll once they have their hash, zones, and
// workloads that have exceeded their time or failed. The first has no name, because messages
// need none; it alone has a budget.
const (
	alone    = ""
	inGroups = "zones"
	late     = "late"
)

// Path is the workload's place in the tree.
func (w *Workload) Path(now time.Time) rollout.Path {
	part := alone
	switch {
	case w.isSlow(now):
		part = late
	case w.Zone.Group != "":
		part = inGroups
	}
	return rollout.Path{part, w.Namespace, w.Kind + " " + w.Name.Name}
}

// pathLength is that of [Workload.Path].
const pathLength = 3

// At is the workload that has a path, false if the path is one of several.
func At(path rollout.Path) (workload.Name, bool) {
	if len(path) != pathLength {
		return workload.Name{}, false
	}
	kind, name, ok := strings.Cut(path[2], " ")
	return workload.Name{Kind: kind, Namespace: path[1], Name: name}, ok
}

// isSlow is true of a workload that takes no place in a budget, because it is down already.
func (w *Workload) isSlow(now time.Time) bool {
	return w.IsLate(now) || w.failure != nil || w.back != nil || w.stuck != nil && !w.rolling(now)
}

// unit is the workload as the engine sees it; false if it is up to date and not
// rolling.
func (w *Workload) unit(now time.Time, options Options) (rollout.Unit, bool) {
	unit := rollout.Unit{Name: w.Kind + " " + w.Name.Name}
	rolling, isLate := w.rolling(now), w.IsLate(now)
	switch {
	case w.back != nil:
		return w.backUnit(unit), true
	case w.stuck != nil:
		return w.stuckUnit(unit, now), true
	case w.failure != nil:
		unit.Leaf = rollout.Leaf{Current: w.Accepted(), Target: w.Accepted(), Health: rollout.Failed, Reason: w.failure.reason(w.Namespace) + soakText(w.failure.Until)}
		return unit, true
	case isLate:
		unit.Policy.Deadline = workload.TimeToRoll(w.Object)
	case w.IsSettled() && !rolling:
		return w.settledUnit(unit, now)
	}
	if !w.IsSettled() {
		unit.Block = w.block(now, options)
	}
	unit.Pause = w.pause()
	waits := unit.Block != nil || unit.Pause != nil || w.Retry.Pending(now)
	unit.Leaf = rollout.Leaf{Current: w.revision(), Target: w.target(), Health: w.availability(rolling || isLate, waits)}
	if why := w.lacksRoom(now); why != "" && (rolling || isLate) {
		unit.Leaf.Health, unit.Leaf.Reason, unit.Policy.Deadline = rollout.Progressing, why, noDeadline
	}
	switch {
	case rolling:
		unit.StartedAt = w.Rolled
	case isLate:
		unit.StartedAt = w.Records.Roll.At
	}
	if w.Retry != nil {
		unit.Leaf.RetryAt, unit.Leaf.RetryReason = w.Retry.At, w.Retry.Reason
	}
	return unit, true
}

// noDeadline is that of a workload that cannot fail.
const noDeadline = -1

// settledUnit is a workload that has its hash, and of which something else remains; false
// if nothing does.
func (w *Workload) settledUnit(unit rollout.Unit, now time.Time) (rollout.Unit, bool) {
	unit.Leaf = rollout.Leaf{Current: earlier, Target: w.Accepted(), Health: rollout.Healthy}
	switch {
	case w.Settings.Tracked && w.Accepted() == "": // for who reads what the manager has not seen yet
		unit.Leaf.Target = unhashed
		unit.Block = &rollout.Block{Reason: ReasonUnread, Since: w.since(now), Message: "the manager has not recorded its config yet"}
		return unit, true
	case w.Legacy.Finalizer:
		unit.Block = &rollout.Block{Reason: ReasonWaveFinalizer, Since: now, Message: w.disowning()}
		return unit, true
	case w.Settings.Tracked && len(w.Pinning.Lost) > 0:
		unit.Block = &rollout.Block{Reason: ReasonSnapshotMissing, Since: w.since(now), Message: w.lostText()}
		return unit, true
	case w.isRolledBack():
		unit.Block = &rollout.Block{Reason: ReasonConfigRolledBack, About: w.failedLast(), Since: w.since(now), Message: rolledBackText(w.Records.Roll.Back, w.Records.Roll.Changed)}
		return unit, true
	case w.isUndone():
		unit.Block = &rollout.Block{Reason: ReasonConfigUndone, Since: w.since(now), Message: w.undoneText()}
		return unit, true
	default:
		return w.keptUnit(unit, now)
	}
}

// disowning is why what wave left was not removed yet.
func (w *Workload) disowning() string {
	names := message.Join(w.Legacy.Owns, ", ", func(o workload.Owned) string { return o.From(w.Namespace) })
	cause := "the manager removes it"
	switch {
	case w.Legacy.Unknown:
		cause = "the manager may not list the ConfigMaps and Secrets that have it as owner; grant it list and watch on them"
	case len(names) > 0:
		cause = "grant the manager patch on what has it as owner (" + names + ") in namespace " + w.Namespace
	case w.Disown != nil:
		cause = w.Disown.Reason
	}
	return "it cannot be deleted, because it has the finalizer " + vocabulary.ConfigFinalizer + " of wave: " + cause
}

// keptUnit is a workload that has its hash, and whose Pods run an earlier revision until a
// user replaces them; false if all run the present one. Pods of a zone are replaced by the
// group.
func (w *Workload) keptUnit(unit rollout.Unit, now time.Time) (rollout.Unit, bool) {
	pods, of := workload.Kept(w.Object)
	if pods == 0 || !w.Settings.Tracked {
		return unit, false
	}
	unit.Block = &rollout.Block{Reason: ReasonPodsKept, Since: w.Records.Roll.At, Message: fmt.Sprintf(
		"%d of %d Pods run an earlier revision: %s", pods, of, workload.KeptBy(w.Object))}
	if unit.Block.Since.IsZero() || unit.Block.Since.After(now) {
		unit.Block.Since = now
	}
	return unit, true
}

// Revisions that are not hashes.
const (
	earlier   = "earlier"
	suspended = "suspended"
	released  = "released"
	unhashed  = "changed"
	// pinned follows the hash of a workload that has to get pins for the config that it has.
	pinned = " pinned"
)

func (w *Workload) revision() string {
	if !w.Suspension.IsSettled() {
		return suspended
	}
	return w.Accepted()
}

func (w *Workload) target() string {
	switch {
	case !w.Settings.Tracked && w.IsSettled():
		return w.revision() // nothing is left to do
	case !w.Settings.Tracked:
		return released
	case w.IsCurrent():
		return w.Accepted()
	case w.Hashes != nil && w.NeedsPins():
		return w.Hashes.Desired + pinned
	case w.Hashes != nil:
		return w.Hashes.Desired
	default:
		return unhashed
	}
}

// IsLate is true if a workload has exceeded its time, while its Pods are still
// replaced for the hash that the ring wrote. It is false once the workload was
// healthy, once another client has changed the template, and where another client
// decides which Pods are replaced.
func (w *Workload) IsLate(now time.Time) bool {
	roll := &w.Records.Roll
	return !roll.At.IsZero() && !w.rolling(now) && w.Health.Health != rollout.Healthy &&
		w.Settings.Tracked && w.IsSettled() && w.Zone.Group == "" &&
		workload.IsReplacing(w.Object) && roll.Template == workload.TemplateDigest(w.Object)
}

// rolling is true while Pods are replaced for a hash that the ring wrote, for at
// most the progress deadline; a workload that is not ready later has other causes.
func (w *Workload) rolling(now time.Time) bool {
	return !w.Rolled.IsZero() && now.Before(w.Rolled.Add(workload.ProgressDeadline)) && w.Health.Health != rollout.Healthy
}

// availability is how the workload counts against the budget: as healthy unless
// the ring itself disrupts it. One whose Pods were never scheduled is down and needs no
// place, and takes none while it waits for what only its users can change.
func (w *Workload) availability(rolling, waits bool) rollout.Health {
	switch {
	case !w.Suspension.IsSettled() && (rolling || !waits):
		return rollout.Degraded
	case rolling:
		return w.Health.Health
	default:
		return rollout.Healthy
	}
}

// block is the ring's own reason why the workload cannot roll, nil if none.
func (w *Workload) block(now time.Time, options Options) *rollout.Block {
	since := w.since(now)
	switch {
	case w.IsTemplateSettled():
		return w.freeing(since)
	case w.Zone.Group != "" && w.Zone.Open && !w.Suspension.IsSuspended():
		return &rollout.Block{Reason: ReasonNotHeld, Message: "group " + w.Zone.Group + " does not hold it at its revision"}
	case !w.Settings.Tracked:
		return nil
	case len(w.Denied) > 0:
		return &rollout.Block{Reason: ReasonNotPermitted, Message: w.DeniedText(), Since: since}
	case len(w.Missing) > 0:
		return &rollout.Block{Reason: ReasonConfigMissing, Message: w.missingText(), About: refTo(w.Missing[0].Object), Since: since}
	case w.Hashes == nil && !w.Retry.Pending(now):
		return w.coalescing(now, options)
	case w.Pods.Unknown != "" && w.NeedsBaseline(now):
		return &rollout.Block{Reason: ReasonConfigUnverified, Since: since, Message: "it is not ready, and its Pods are not known: " + w.Pods.Unknown}
	case w.stop != nil:
		return &rollout.Block{Reason: w.stop.Reason, Message: w.stop.Message(), About: refTo(w.stop.Release.Object), Since: since}
	case w.brake != nil:
		return w.brake.block()
	case w.staged != nil:
		return &w.staged.Block
	default:
		return nil
	}
}

// since is when the condition on the workload began, now if it has none.
func (w *Workload) since(now time.Time) time.Time {
	if c := w.Records.Condition; c != nil {
		return c.Since
	}
	return now
}

// freeing is why the suspended Pods of a released workload cannot be deleted yet.
func (w *Workload) freeing(since time.Time) *rollout.Block {
	switch {
	case !w.Suspension.Known:
		return nil // a failed read is tried again
	case !w.Suspension.Seen:
		return &rollout.Block{Reason: ReasonReleasing, Message: "its controller has not observed the release yet", Since: since}
	case len(w.Suspension.Deletable()) == 0:
		return &rollout.Block{Reason: ReasonReleasing, Since: since, Message: fmt.Sprintf(
			"Pod %s is not scheduled, because the partition keeps it at the suspended revision; lower the partition", w.Suspension.Waiting[0].Name)}
	default:
		return nil
	}
}

// coalescing is why a change is not rolled yet.
func (w *Workload) coalescing(now time.Time, options Options) *rollout.Block {
	until := options.SettlesAt(&w.Workload, &w.Change)
	switch {
	case until.After(now):
	case w.Retry != nil:
		return &rollout.Block{Reason: ReasonUnread, Message: "its config could not be read"}
	default:
		return &rollout.Block{Reason: ReasonUnread, Message: "its config is read next"}
	}
	within := options.Window(&w.Workload).String()
	if collects := w.Settings.CollectFor; collects > 0 {
		within = collects.String() + " of the first"
	}
	return &rollout.Block{
		Reason:  ReasonCoalescing,
		Message: fmt.Sprintf("its config changed; changes within %s become one roll", within),
		Since:   w.Change.First,
		Until:   until,
	}
}

// Keeps says what a workload that is to be rolled has of each object meanwhile.
func (w *Workload) Keeps() (said []string) {
	for _, m := range w.Pinning.Lacking {
		said = append(said, m.String(w.Namespace)+": new Pods cannot start until the workload rolls")
	}
	if w.Hashes == nil || w.IsCurrent() || !w.Suspension.IsSettled() {
		return said
	}
	for _, r := range w.Lacks(w.Change.Keys) {
		if k := w.KeepingOf(r); k != workload.KeepsUnread {
			said = append(said, r.Object.From(w.Namespace)+": "+k.Clause())
		}
	}
	return said
}

// putOff is true until a failed write is retried.
func (w *Workload) putOff(now time.Time) bool {
	return w.Retry.Pending(now) && w.Retry.Write
}
