package config

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/internal/ring"
)

// cache keeps what is known of each workload from one pass to the next. Losing it
// is safe.
type cache map[types.UID]*entry

// entry is what is known of one workload.
type entry struct {
	// workload and health were read when the workload was at version.
	version  string
	workload workload.Workload
	health   health.Report
	// trackedBy is the policy that tracks it, as it was then.
	trackedBy *policy.Policy
	// reloader has its annotations of Reloader read, nil if they are not.
	reloader *reloader.Options
	// refused is why it could not keep its config, when that was decided.
	refused string
	// rolled is when the workload was rolled by its record. A time in the future counts as
	// the moment when the record was read first.
	rolled time.Time

	// adopted is what is recorded of its adoption.
	adopted workload.Baseline

	config content.Known
	// demandedAt is what the demand was found by, if annotations of Reloader decide it.
	demandedAt string
	changes    changes
	// was is what was recorded on it last, with its hash.
	was decision.Was
	// tried is when it may have been rolled: the answer was lost. It is zero once another spec was seen.
	tried time.Time
}

// of returns the entry of a workload, an empty one if there is none.
func (c cache) of(obj client.Object) *entry {
	if e, ok := c[obj.GetUID()]; ok {
		return e
	}
	e := &entry{}
	c[obj.GetUID()] = e
	return e
}

// begin forgets what depends on when workloads were seen, and so on who looked at them.
func (c cache) begin() {
	for uid, e := range c {
		if e.changes = (changes{}); !e.rolled.Equal(e.workload.Records.Roll.At) { // it was rolled in the future
			delete(c, uid)
		}
	}
}

// keep forgets all workloads but those seen.
func (c cache) keep(seen []*entry) {
	if len(c) == len(seen) {
		return
	}
	clear(c)
	for _, e := range seen {
		c[e.workload.UID] = e
	}
}

// read reads the workload, if it, the policy that tracks it, or whether its annotations of Reloader are read has
// changed since it was read last. It is
// true if the spec is another.
func (e *entry) read(obj client.Object, by *policy.Policy, annotations *reloader.Options, now time.Time) bool {
	if e.version == obj.GetResourceVersion() && e.trackedBy == by && e.reloader == annotations {
		return false
	}
	e.reloader = annotations
	before, rolled, hash := e.workload.Generation, e.workload.Records.Roll.At, e.workload.Template.Hash
	e.trackedBy = by
	e.version, e.workload, e.health = obj.GetResourceVersion(), e.readAgain(obj), health.Of(obj, gvkOf(obj))
	if at := e.workload.Records.Roll.At; !at.Equal(rolled) {
		e.rolled = at
		if at.After(now) {
			e.rolled = now
		}
	}
	if is := &e.workload; is.IsRecorded() {
		e.was = decision.Was{Roll: is.Records.Roll, Hash: is.Template.Hash}
	}
	if e.workload.Template.Hash != hash {
		e.rehash()
	}
	if e.workload.Generation != before {
		e.tried = time.Time{}
	}
	return e.workload.Generation != before
}

// rehash is for a workload whose hash is another one. With that of what was observed last it is up to
// date, whatever has changed in the meantime. With any other it would be rolled not only for what changes from
// now on: a user who has undone a roll went back from all that it was rolled for.
func (e *entry) rehash() {
	if w := e.observed(); w.Hashes != nil && w.IsCurrent() {
		e.changes.settle(e.config.Facts())
		return
	}
	e.changes.settled, e.changes.pending.Keys = nil, nil
}

// observed is the workload with what was observed of its config.
func (e *entry) observed() workload.Workload {
	w := e.workload
	w.Observe(&e.config)
	return w
}

// pinBy lets policies ask for pins. Those in force may be others than when the workload was
// read.
func (e *entry) pinBy(policies policy.Set) {
	w, by := &e.workload, ""
	if w.Settings.Tracked && !w.Settings.PinSet {
		if p := policies.Pinning(w.Namespace, w.Object.GetLabels(), w.Demand.Uses); p != nil {
			by = p.String()
		}
	}
	if by == w.Pinning.By {
		return
	}
	if w.Pinning.By != "" {
		e.workload = e.readAgain(w.Object)
	}
	e.workload.PinBy(by)
}

// allow says whether the workload can keep its config: refused is why it cannot. It is decided again if it
// was read again, and if the answer is another one.
func (e *entry) allow(refused string) {
	decided := e.workload.Pinning.On || e.workload.Pinning.Refused != ""
	if !decided || e.refused != refused {
		e.refused = refused
		e.workload.Allow(refused)
	}
}

func (e *entry) readAgain(obj client.Object) workload.Workload {
	e.demandedAt = ""
	w := e.readBare(obj)
	w.Adopt(e.adopted)
	return w
}

// adopt has it know what is recorded of its adoption.
func (e *entry) adopt(recorded workload.Baseline) {
	if e.adopted != recorded {
		e.adopted = recorded
		e.workload.Adopt(recorded)
	}
}

func (e *entry) readBare(obj client.Object) workload.Workload {
	switch {
	case e.trackedBy == nil && e.reloader != nil:
		return workload.ReadReloaded(obj, e.reloader)
	case e.trackedBy == nil:
		return workload.Read(obj)
	}
	return workload.ReadTracked(obj, e.trackedBy.String(), e.trackedBy.TracksSince())
}

// dueSince is since when the config is to be read: since its change, or from the beginning.
func (e *entry) dueSince() time.Time {
	if first := e.changes.pending.First; !first.IsZero() {
		return first
	}
	return e.workload.Object.GetCreationTimestamp().Time
}

// snapshot is the entry as an immutable value.
func (e *entry) snapshot(refusals ring.Refusals) decision.Workload {
	w := decision.Workload{
		Workload: e.observed(), Health: e.health, Rolled: e.rolled, Change: e.changes.pending, Was: e.was,
	}
	if len(refusals) > 0 { // there are nearly never any, and the names take time to make
		w.Retry, w.Disown = retryOf(refusals, &e.workload), disowning(refusals, &e.workload)
	}
	return w
}

// changes are what was observed to change in the config of one workload since it
// was up to date.
type changes struct {
	// settled are the facts when the workload was up to date.
	settled content.Facts
	pending decision.Change
}

// saw records a change to these facts.
func (c *changes) saw(now time.Time, namespace string, facts content.Facts) {
	if c.pending.First.IsZero() {
		c.pending.First = now
	}
	c.pending.Last = now
	c.name(namespace, facts)
}

// missed notes when changes began that are collected from the first one on, if the manager has not seen that: it has
// just begun.
func (e *entry) missed() {
	if e.workload.Settings.CollectFor <= 0 || e.config.Hashes() != nil || workload.IsUnchanged(&e.workload, &e.config) {
		return
	}
	w, c := e.observed(), &e.changes.pending
	c.First = ring.Earlier(c.First, w.EditedFirst())
	c.Last = ring.Later(c.Last, c.First)
}

// name notes what has changed by these facts. Those with the values that were hashed may be newer than what
// was seen, and nothing more is seen of them later.
func (c *changes) name(namespace string, facts content.Facts) {
	c.pending.Keys = facts.ChangedSince(namespace, c.settled)
}

// settle records that the workload is up to date: the next change is compared with
// these facts.
func (c *changes) settle(facts content.Facts) { c.settled, c.pending = facts, decision.Change{} }
