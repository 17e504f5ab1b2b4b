package world

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/internal/simulate/record"
)

// Never is a readiness time: the Pod runs and is never ready.
const Never = time.Duration(-1)

// DefaultReady is how long a Pod takes of which nothing is said and none was seen.
const DefaultReady = 30 * time.Second

// Readiness is how long Pods take until they are ready, and Jobs until they are done.
type Readiness struct {
	// Default is that of Pods of which nothing else is said.
	Default time.Duration
	// Of is by "statefulset/x", the kind in lower case, of what the Pods belong to. One that is named
	// itself, as "pod/x-0", counts before that.
	Of map[string]time.Duration
	// New is that of every unit at a revision that did not run before the change, nil if it is as any
	// other.
	New *time.Duration
	// OfRevision counts before all: by the same, and then by what the revision is called.
	OfRevision map[string]map[string]time.Duration
}

// Clone returns a copy that shares nothing.
func (r *Readiness) Clone() Readiness {
	c := Readiness{Default: r.Default, New: r.New, Of: maps.Clone(r.Of), OfRevision: maps.Clone(r.OfRevision)}
	for ref, times := range c.OfRevision {
		c.OfRevision[ref] = maps.Clone(times)
	}
	return c
}

// Set sets the time of "statefulset/x", or of "statefulset/x@v2".
func (r *Readiness) Set(key string, d time.Duration) {
	ref, revision, ok := strings.Cut(key, "@")
	if !ok {
		if r.Of == nil {
			r.Of = map[string]time.Duration{}
		}
		r.Of[ref] = d
		return
	}
	if r.OfRevision == nil {
		r.OfRevision = map[string]map[string]time.Duration{}
	}
	if r.OfRevision[ref] == nil {
		r.OfRevision[ref] = map[string]time.Duration{}
	}
	r.OfRevision[ref][revision] = d
}

// Keys are all that is named, as [Readiness.Set] takes it, in their order.
func (r *Readiness) Keys() []string {
	keys := slices.Collect(maps.Keys(r.Of))
	for ref, times := range r.OfRevision {
		for revision := range times {
			keys = append(keys, ref+"@"+revision)
		}
	}
	slices.Sort(keys)
	return keys
}

// For returns the time of the Pods of an object, of whichever revision.
func (r *Readiness) For(kind, name string) time.Duration {
	if d, ok := r.Of[record.Reference(kind, name)]; ok {
		return d
	}
	return r.Default
}

// NewRevision is what a user calls the revision that did not run before the change.
const NewRevision = "new"

// Revision is what an instance runs, as far as it can be good or bad.
type Revision struct {
	// ID tells it from every other revision of the object.
	ID string
	// Names are what a user may call it. Hash is one of which the beginning is enough.
	Names []string
	Hash  string
}

// hashed is how much of a hash names it: it is shown with seven digits.
const hashed = 6

func (v Revision) isCalled(name string) bool {
	return slices.Contains(v.Names, name) || len(name) >= hashed && strings.HasPrefix(v.Hash, name)
}

// Ran notes that a revision of an object is known to become ready.
func (w *World) Ran(kind, name string, v Revision) {
	w.ran[record.Reference(kind, name)+"@"+v.ID] = true
}

// ReadyIn is how long an object takes at a revision, which is asked for only if some of its are
// named. What exists before the change is running.
func (w *World) ReadyIn(r Readiness, kind, name string, at func() Revision) time.Duration {
	if d, ok := w.Said(r, kind, name, at); ok {
		return d
	}
	return r.Default
}

// Said is the same of an object that is named.
func (w *World) Said(r Readiness, kind, name string, at func() Revision) (time.Duration, bool) {
	ref := record.Reference(kind, name)
	w.Met[ref] = true
	times := r.OfRevision[ref]
	if !w.Begun {
		if len(times) > 0 || r.New != nil {
			w.Ran(kind, name, at())
		}
		return 0, true
	}
	if r.New != nil && !w.ran[ref+"@"+at().ID] {
		return *r.New, true
	}
	if len(times) > 0 {
		if called := w.called(ref, at(), times); called != "" {
			w.Met[ref+"@"+called] = true
			return times[called], true
		}
	}
	d, ok := r.Of[ref]
	return d, ok
}

// called is by which of some names a revision is meant, the most precise one, empty if by none.
func (w *World) called(ref string, v Revision, names map[string]time.Duration) string {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(names))) {
		if v.isCalled(name) || name == NewRevision && !w.ran[ref+"@"+v.ID] {
			return name
		}
	}
	return ""
}
