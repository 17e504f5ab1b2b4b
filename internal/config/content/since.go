package content

import (
	"slices"
	"time"
)

// together is how long a tool may take to write what users change together: an edit of config shortly before
// the workload that uses it is opted in is meant to be rolled.
const together = 5 * time.Minute

// IsCreatedSince is true of an object that was created at a time, or later.
func (f Facts) IsCreatedSince(o Object, at time.Time) bool {
	return f[o].exists && !f[o].created.Before(at.Truncate(time.Second))
}

// IsEdited is true if the Pods of a workload that was created, and later opted in, may have started with
// another content of some of these objects, because one was edited with the opt-in or later. What was never
// edited has the content that it had for Pods which cannot start without it, or that are
// younger. When the secrets store driver has mounted something is not known, and does not
// count. Times are to the second, as the API server records them.
func (f Facts) IsEdited(uses []Use, created, optedIn time.Time) bool {
	return slices.ContainsFunc(uses, func(u Use) bool {
		of := f[u.Object]
		unedited := of.written.Equal(of.created) && (u.Required || !of.created.After(created))
		return of.exists && !u.Ignored && !unedited && !of.written.Before(optedIn.Add(-together))
	})
}

// WrittenAfter is when the content of an object was edited last, if that was after a time, to the second; zero if
// it was not, or was never edited since it was created.
func (f Facts) WrittenAfter(o Object, at time.Time) time.Time {
	of := f[o]
	if !of.exists || !of.written.After(of.created) || !of.written.After(at) {
		return time.Time{}
	}
	return of.written
}

// WrittenAt is when the content of an object was written last, to the second: when it was created if nothing is known
// to have been written since, and zero if it does not exist.
func (f Facts) WrittenAt(o Object) time.Time { return f[o].written }

// Writer is the field manager that wrote the content of an object last, empty if that is not known.
func (f Facts) Writer(o Object) string { return f[o].writer }
