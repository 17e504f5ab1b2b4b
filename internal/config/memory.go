package config

import (
	"crypto/sha256"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/health"
)

// memory keeps, from one pass to the next, what would be work to find out
// again. Losing it is safe.
type memory map[types.UID]*recollection

// recollection is what is remembered of one workload.
type recollection struct {
	// object, as it was at version; the fields up to suspension, and health, follow from it alone.
	object          client.Object
	version         string
	generation      int64
	settings        Settings
	refs            []Reference
	predecessorRefs []Reference
	template        Template
	records         Records
	legacy          Legacy
	suspension      Suspension
	health          health.Report

	// facts and denied were found out when the workload was at version factsOf.
	facts   map[Object]facts
	denied  []string
	factsOf string
	// fingerprint is of the digests that count. The hashes were computed when it
	// was hashedFor; the values then read, which may have been newer, had hashedAs.
	fingerprint, hashedFor, hashedAs [sha256.Size]byte
	hashes                           *Hashes
	// forbidden says what the values could not be read of, when last tried.
	forbidden []string
	// settled are the facts as they were when all was well.
	settled map[Object]facts
	change  Change

	retry    *Retry
	attempts int
}

// of returns the recollection of a workload, an empty one if there is none.
func (m memory) of(obj client.Object) *recollection {
	if r, ok := m[obj.GetUID()]; ok {
		return r
	}
	r := &recollection{}
	m[obj.GetUID()] = r
	return r
}

// keep forgets all workloads but those seen.
func (m memory) keep(seen []*recollection) {
	if len(m) == len(seen) {
		return
	}
	clear(m)
	for _, r := range seen {
		m[r.object.GetUID()] = r
	}
}

// scope is what counts now; the ignored objects are left out of it.
func (r *recollection) scope() scope {
	ignored := slices.Clone(r.settings.Ignored)
	for o, f := range r.facts {
		if f.ignored {
			ignored = append(ignored, Reference{Object: o})
		}
	}
	return scope{namespace: r.object.GetNamespace(), refs: r.refs, ignored: ignored}
}

// judge finds out from the digests whether the config has changed since the
// hashes were computed, and since when it has.
func (p *pass) judge(r *recollection) {
	known := r.fingerprint != [sha256.Size]byte{}
	current := fingerprint(r.scope(), r.facts)
	if known && current != r.fingerprint && current != r.hashedAs {
		r.change.saw(p.now)
		changes.Inc()
		r.change.Keys = changedKeys(r.object.GetNamespace(), r.settled, r.facts)
	}
	r.fingerprint = current
}

// saw notes that a change was seen.
func (c *Change) saw(now time.Time) {
	if c.First.IsZero() {
		c.First = now
	}
	c.Last = now
}

// settle notes that all is well: the next change is measured from here.
func (r *recollection) settle() {
	r.settled, r.change = r.facts, Change{}
}

// fingerprint is a digest of all digests that count in a scope. What brings
// nothing to the Pods, brings nothing to it.
func fingerprint(s scope, known map[Object]facts) [sha256.Size]byte {
	h := sha256.New()
	for _, ref := range without(s.refs, s.ignored) {
		digests := known[ref.Object].digests
		used := keys(s, ref, digests)
		if len(used) == 0 {
			continue
		}
		h.Write([]byte(ref.Object.Kind + "\x00" + Kind(s.slot(ref.Object)) + "\x00"))
		for _, key := range used {
			h.Write([]byte(key + "\x00" + digests[key]))
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// changedKeys names the keys that differ between two moments; nil if the first
// one is not known.
func changedKeys(namespace string, before, after map[Object]facts) []string {
	if before == nil {
		return nil
	}
	var changed []string
	for _, o := range slices.SortedFunc(maps.Keys(after), Object.compare) {
		changed = append(changed, changedIn(o.From(namespace), before[o], after[o])...)
	}
	return changed
}

func changedIn(object string, before, after facts) []string {
	var keys []string
	for key := range after.digests {
		if before.digests[key] != after.digests[key] {
			keys = append(keys, object+": "+key)
		}
	}
	for key := range before.digests {
		if _, ok := after.digests[key]; !ok {
			keys = append(keys, object+": "+key)
		}
	}
	slices.Sort(keys)
	return keys
}

// failed puts off the next try, longer each time.
func (r *recollection) failed(now time.Time, err error, write bool) {
	delay := min(retryFirst<<min(r.attempts, retryDoublings), retryMost)
	r.attempts++
	r.retry = &Retry{At: now.Add(delay), Reason: err.Error(), Write: write}
}

// learn remembers which writes failed, and returns when to look again: zero if
// nothing changes by itself.
func (o *observer) learn(outcomes []outcome, plan Plan) time.Duration {
	now, wake := o.options.Now(), plan.Wake
	for _, out := range outcomes {
		r, ok := o.memory[out.write.Workload.UID]
		switch {
		case !ok:
		case out.err == nil:
			r.retry, r.attempts = nil, 0
			if len(out.write.Frees) > 0 { // no watch says that they are gone
				wake = now
			}
		default:
			r.failed(now, out.err, true)
		}
	}
	for _, r := range o.memory {
		if r.retry.pending(now) {
			wake = earlier(wake, r.retry.At)
		}
	}
	if wake.IsZero() {
		return 0
	}
	return max(wake.Sub(now), time.Millisecond)
}

// earlier is the earlier of two moments, of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// workload is the recollection as an immutable value.
func (r *recollection) workload() Workload {
	w := Workload{
		Name: nameOf(r.object), UID: r.object.GetUID(), Generation: r.generation,
		Settings: r.settings, Template: r.template, Health: r.health,
		Denied: slices.Concat(r.denied, r.forbidden), Change: r.change, Retry: r.retry,
		Records: r.records, Legacy: r.legacy, Suspension: r.suspension, object: r.object,
	}
	if !r.settings.Tracked {
		return w
	}
	w.Uses, w.Missing = r.uses(), r.missing()
	if r.hashKnown() {
		w.Hashes = r.hashes
	}
	return w
}

func (r *recollection) uses() []Use {
	ignored := r.scope().ignored
	uses := make([]Use, 0, len(r.refs))
	for _, ref := range r.refs {
		uses = append(uses, Use{
			Reference: ref,
			Exists:    r.facts[ref.Object].exists,
			Ignored:   len(without([]Reference{ref}, ignored)) == 0,
		})
	}
	return uses
}

// missing is what a Pod cannot start without and does not exist, each once.
func (r *recollection) missing() []Missing {
	var missing []Missing
	add := func(m Missing) {
		if !slices.Contains(missing, m) {
			missing = append(missing, m)
		}
	}
	for _, ref := range r.refs {
		f := r.facts[ref.Object]
		if !f.exists && ref.Required {
			add(Missing{Object: ref.Object})
		}
		for _, use := range ref.Keys {
			if _, ok := f.digests[use.Name]; f.exists && use.Required && !ok {
				add(Missing{Object: ref.Object, Key: use.Name})
			}
		}
	}
	return missing
}
