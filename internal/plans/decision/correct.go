package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/execution"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/replay"
	"github.com/spillway-dev/spillway/rollout"
)

// peace is for how long an object must stay as it was applied again, so that its next difference
// is a new one, which waits for nothing.
func peace() time.Duration { return 2 * execution.Retries().Most }

// findsDrift notes which objects differ from what was applied, and has them applied again if the
// Instance wants that.
func (d *decider) findsDrift() {
	inventory := d.Status.Inventory
	for i := range inventory {
		if u := d.Answered[object.EntryRef(inventory[i])]; u != nil && inventory[i].Correction != nil {
			inventory[i].Applied = task.HeadOf(u, d.Instance.Name).Applied
		}
	}
	differing, needs := d.Drift(inventory)
	d.Needs.Add(needs)
	d.Status.Drift = task.DriftOf(differing)
	if d.Instance.Spec.Drift == v1beta1.DriftCorrect && len(differing) > 0 && d.Needs.IsEmpty() {
		d.correct(differing)
	}
}

// correct has objects applied again that differ. Each try of each object is recorded before it is
// made. If another client, or the API server, undoes it, the next one is ever later. Nothing is
// corrected beside a plan, nor after one that failed.
func (d *decider) correct(differing []task.Difference) {
	d.corrects = true
	if len(d.Writes) > 0 || d.Status.Attempted != nil || d.Status.AggregatedStatus.Status == v1beta1.FatalError {
		return
	}
	root := rollout.Unit{Group: true, Pause: execution.PauseOf(d.Instance)}
	writes := map[string][]write.Write{}
	d.helpless = true
	for i := range differing {
		x := &differing[i]
		f := d.correction(x)
		d.Needs.Add(f.Needs)
		unit := d.correctionUnit(x, &f)
		if slices.ContainsFunc(root.Children, func(u rollout.Unit) bool { return u.Name == unit.Name }) {
			unit.Name += " of " + strings.Trim(x.Group+" "+x.Namespace, " ")
		}
		d.helpless = d.helpless && (f.Fatal != "" || f.Blocked != nil)
		root.Children, writes[unit.Name] = append(root.Children, unit), f.Writes
	}
	if !d.Needs.IsEmpty() {
		return
	}
	soon := d.Wake
	d.Plan = replay.Decide("corrections of Instance "+d.Instance.Namespace+"/"+d.Instance.Name, rollout.Observed{Now: d.Now, Root: root})
	d.wakeBy(soon)
	for i := range differing {
		name := root.Children[i].Name
		if slices.ContainsFunc(d.Steps, func(s rollout.Step) bool { return s.Path.String() == name }) {
			e := &d.Status.Inventory[differing[i].Entry]
			e.Correction = &v1beta1.Correction{Times: d.timesCorrected(e) + 1, At: d.stamp()}
			d.Writes = append(d.Writes, writes[name]...)
		}
	}
}

// timesCorrected is how often an object was corrected that has not stayed so.
func (d *decider) timesCorrected(e *v1beta1.InventoryEntry) int32 {
	if c := e.Correction; c != nil && d.Now.Sub(c.At.Time) < peace() {
		return c.Times
	}
	return 0
}

// correction is what applies an object again as the execution did that applied it last.
func (d *decider) correction(x *task.Difference) task.Finding {
	e := &d.Status.Inventory[x.Entry]
	of, hash, plan := d.executionOf(e)
	if of == nil {
		return task.Finding{Fatal: "it is no longer known how it was applied; run the plan again that applies it"}
	}
	version := d.contentOf(hash)
	if version == nil {
		if _, read := d.Contents[hash]; !read {
			return task.Finding{Needs: task.Needs{Contents: map[string]v1beta1.InstanceSpec{hash: *of}}}
		}
		return task.Finding{Fatal: "the content of OperatorVersion " + of.OperatorVersion.Name + " with which plan " + plan + " applied it no longer exists; run the plan again"}
	}
	values, problems := d.values(version, of.Parameters)
	if len(problems) > 0 {
		return task.Finding{Fatal: choice.Sentences(problems)}
	}
	uid, _, _ := strings.Cut(e.AppliedIn, " ")
	run := &task.Run{
		Snapshot: &d.Snapshot.Snapshot, Version: version, Values: values,
		Execution: &v1beta1.Execution{UID: types.UID(uid), Plan: plan, Spec: *of, ContentHash: hash},
	}
	return run.Correct(e)
}

// executionOf is what the execution that applied an object last ran with, nil if that is not known.
func (d *decider) executionOf(e *v1beta1.InventoryEntry) (spec *v1beta1.InstanceSpec, hash, plan string) {
	is := func(uid string) bool { return uid != "" && strings.HasPrefix(e.AppliedIn, uid+" ") }
	if last := d.Status.Execution; last != nil && is(string(last.UID)) {
		return &last.Spec, last.ContentHash, last.Plan
	}
	for i := range d.Status.History {
		if past := &d.Status.History[i]; is(string(past.UID)) {
			return past.Spec, past.ContentHash, past.Plan
		}
	}
	return nil, "", ""
}

// contentOf is the content with this hash, nil if it was not read or does not exist.
func (d *decider) contentOf(hash string) *choice.Version {
	for _, v := range []*choice.Version{d.Version, d.Former, d.Contents[hash]} {
		if v != nil && v.Hash == hash {
			return v
		}
	}
	return nil
}

// correctionUnit is an object that differs, as the engine sees it: outdated until it is applied again.
func (d *decider) correctionUnit(x *task.Difference, f *task.Finding) rollout.Unit {
	e := &d.Status.Inventory[x.Entry]
	unit := rollout.Unit{Name: x.String(), Leaf: rollout.Leaf{Target: e.AppliedIn}}
	if refusal, ok := d.Refusals[x.Ref]; ok && e.Correction != nil && !refusal.At.Before(e.Correction.At.Time) {
		e.Correction.Message = message.Sentence(refusal.Reason)
	}
	switch times := d.timesCorrected(e); {
	case f.Fatal != "":
		unit.Block = &rollout.Block{Reason: ReasonDrifted, Message: f.Fatal}
	case f.Blocked != nil:
		unit.Block = f.Blocked
	case f.Lacks != "":
		unit.Leaf.Current, unit.Leaf.Health, unit.Leaf.Reason = unit.Leaf.Target, rollout.Progressing, f.Lacks
	case times > 0:
		unit.Leaf.RetryAt = e.Correction.At.Add(execution.Retries().After(int(times) - 1))
		unit.Leaf.RetryReason = fought(x, e.Correction)
	case f.Failed != "":
		unit.Block = &rollout.Block{Reason: ReasonDrifted, Message: f.Failed}
		d.wakeBy(d.Now.Add(execution.Retries().Most))
	}
	return unit
}

// fought says why an object that was applied again differs all the same.
func fought(x *task.Difference, c *v1beta1.Correction) string {
	again := "applied again once"
	if c.Times > 1 {
		again = fmt.Sprintf("applied again %d times", c.Times)
	}
	switch {
	case c.Message != "":
		return c.Message
	case x.Head == nil:
		return again + ", and deleted again by another client"
	case x.Head.By == "":
		return again + ", and changed again by another client"
	default:
		return again + ", and changed again by " + x.Head.By
	}
}

// correcting says what becomes of what differs.
func (d *decider) correcting() string {
	said := task.DriftSentence(d.Status.Drift)
	if hold := d.At().Hold; hold != nil {
		return said + "; " + hold.Message
	}
	return said + "; applying again"
}
