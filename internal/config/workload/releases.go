package workload

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/spillway-dev/spillway/internal/config/content"
)

// ReleasesOf are the present releases that a change of these keys consists of, as far as the
// workload uses the keys. The keys are as a record names them; if they are not known, or
// not all are, they are all that the workload uses, up to a bound: each is compared with the
// failures of others.
func (w *Workload) ReleasesOf(keys []string) []content.Release {
	all := len(keys) == 0 || keys[len(keys)-1] == More
	var releases []content.Release
	for i := range w.Uses {
		use := &w.Uses[i]
		if use.Ignored || !all && !use.IsAmong(w.Namespace, keys) {
			continue
		}
		r, ok := w.Config.Release(use.Object)
		if ok && !slices.Contains(releases, r) {
			releases = append(releases, r)
		}
		if len(releases) == mostReleases {
			break
		}
	}
	if len(releases) == 0 && !all { // it is none of these keys
		return w.ReleasesOf(nil)
	}
	return releases
}

// Lacks are those of [Workload.ReleasesOf] that a workload is to be rolled for. Where it is not known what has
// changed, because the manager has just begun, they are those that it did not get with its hash; after an undo those of
// the roll that was undone.
func (w *Workload) Lacks(keys []string) []content.Release {
	if len(keys) == 0 && w.isLastUndone() {
		keys = w.Records.Roll.Changed
	}
	releases, got := w.ReleasesOf(keys), w.Records.Roll.Got
	if len(keys) > 0 || len(got) == 0 {
		return releases
	}
	hash := cmp.Or(w.Template.Hash, w.Accepted())
	lacks := slices.DeleteFunc(slices.Clone(releases), func(r content.Release) bool { return slices.Contains(got, markOf(r, hash)) })
	if len(lacks) == 0 { // what has changed is none of them
		return releases
	}
	return lacks
}

// isLastUndone is true of a workload that has the hash again that it had before its last roll, where that was for the
// present contents: it lacks what that has brought, and nothing else.
func (w *Workload) isLastUndone() bool {
	roll := &w.Records.Roll
	isKnown := len(roll.Changed) > 0 && roll.Changed[len(roll.Changed)-1] != More
	return isKnown && roll.Was != "" && roll.Was == cmp.Or(w.Template.Hash, w.Accepted()) &&
		w.Hashes != nil && w.Hashes.Desired != roll.Was && roll.Of == markOf(content.Release{}, w.Hashes.Desired)
}

// Outdated are the objects that exist, as far as the caller knows, and of which the workload did not get the present
// content with its hash, by the record of that: after an undo what the last roll has brought.
func (w *Workload) Outdated() (objects []content.Object) {
	got, hash := w.Records.Roll.Got, cmp.Or(w.Template.Hash, w.Accepted())
	if len(got) == 0 {
		return nil
	}
	var keys []string
	if of := w.Records.Roll.Of; of != "" && of != markOf(content.Release{}, hash) { // the last roll was undone
		keys, got = w.Records.Roll.Changed, nil
	}
	for _, r := range w.ReleasesOf(keys) {
		if w.Config.Exists(r.Object) && !slices.Contains(got, markOf(r, hash)) {
			objects = append(objects, r.Object)
		}
	}
	return objects
}

// got are marks of the present contents of what a workload uses.
func (w *Workload) got() []string {
	if w.Hashes == nil {
		return nil
	}
	var marks []string
	for _, r := range w.ReleasesOf(nil) {
		marks = append(marks, markOf(r, w.Hashes.Desired))
	}
	return marks
}

// markOf is a mark of a content that a workload got with a hash. With another hash it is another one.
func markOf(r content.Release, hash string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %v %s", hash, r.Object, r.Digest))
	return hex.EncodeToString(sum[:8])
}

// IsRecorded is true of a workload on which is recorded with what it got the hash that it has.
func (w *Workload) IsRecorded() bool {
	roll := &w.Records.Roll
	return w.Template.Hash != "" && (!roll.At.IsZero() || !roll.Admitted.IsZero()) && (roll.Of == "" || roll.Of == markOf(content.Release{}, w.Template.Hash))
}

// IsForgotten is true of a workload that existed at a time, has its present config since, and on which nothing says
// with what it got that: a tool has taken the record away, perhaps together with the hash, or has restored an older one.
func (w *Workload) IsForgotten(at time.Time) bool {
	roll := &w.Records.Roll
	switch {
	case w.IsRecorded(), w.baseline().Scope != "", w.Object.GetCreationTimestamp().After(at), !roll.At.Before(at), !roll.Admitted.Before(at):
		return false
	case w.Template.Hash == "":
		return roll.At.IsZero() && roll.Admitted.IsZero() && !w.optedIn.After(at)
	default:
		return w.IsCurrent() && w.IsNewest() && !w.Adopts()
	}
}

// mostReleases is more than what a user changes at a time for one workload.
const mostReleases = 64

// More ends a list of keys that is not complete.
const More = "…"
