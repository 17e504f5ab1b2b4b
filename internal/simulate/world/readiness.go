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
	// itself, as "pod/x-0", counts before that, and one of a revision, as "statefulset/x@v2", before
	// one of all.
	Of map[string]time.Duration
}

// For returns the time of the Pods of an object, of whichever revision.
func (r Readiness) For(kind, name string) time.Duration {
	if d, ok := r.Of[record.Reference(kind, name)]; ok {
		return d
	}
	return r.Default
}

// revisions are the keys that name one revision of what is referred to, the most precise first.
func (r Readiness) revisions(ref string) []string {
	keys := slices.Sorted(maps.Keys(r.Of))
	slices.Reverse(keys)
	return slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, ref+"@") })
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

// ReadyIn is how long a revision of an object takes. What exists before the change is running.
func (w *World) ReadyIn(r Readiness, kind, name string, v Revision) time.Duration {
	if d, ok := w.Said(r, kind, name, v); ok {
		return d
	}
	return r.Default
}

// Said is how long a revision of an object takes, if the object is named.
func (w *World) Said(r Readiness, kind, name string, v Revision) (time.Duration, bool) {
	ref := record.Reference(kind, name)
	w.Met[ref] = true
	if !w.Begun {
		w.Ran(kind, name, v)
		return 0, true
	}
	for _, key := range r.revisions(ref) {
		called := strings.TrimPrefix(key, ref+"@")
		if v.isCalled(called) || called == NewRevision && !w.ran[ref+"@"+v.ID] {
			w.Met[key] = true
			return r.Of[key], true
		}
	}
	d, ok := r.Of[ref]
	return d, ok
}
