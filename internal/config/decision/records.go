package decision

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/verdict"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/ring"
)

// RecordWrite creates the record of an object, changes it, or deletes it.
type RecordWrite struct {
	// Before is the record as it was observed, nil if there is none; After is what it is to be.
	Before, After *v1alpha1.ConfigRollout
	// Permits is true if what has failed is another, or how workloads did before they are rolled: it comes before
	// all that follows from it. The rest only says how far the content has come.
	Permits bool
	// judges is true if what has failed is another.
	judges bool
	// adopts is true if it says with what config workloads were taken over.
	adopts bool
	// Awaiting are the workloads that must not be rolled before it is made.
	Awaiting []workload.Name
}

// ActDescribe is the act of a write that only says how far a content has come.
const ActDescribe = "Describe"

// Change identifies the write.
func (w *RecordWrite) Change() ring.Change {
	r := cmp.Or(w.After, w.Before)
	c := ring.Change{Act: ActDescribe, Object: recordNamed(r.Namespace, r.Name)}
	if w.judges || w.adopts || len(w.Awaiting) > 0 {
		c.Act = "Record"
	}
	return c
}

// recordNamed is what the writes of a record are called.
func recordNamed(namespace, name string) string { return verdict.Kind + " " + namespace + "/" + name }

// recordWrites are the writes after which the records say what has failed, and how far contents have come; and
// when to look again, because some of it was written a moment ago.
func (o *Observed) recordWrites(p *Plan, every time.Duration) (writes []RecordWrite, again time.Time) {
	if !o.Recordable {
		return nil, time.Time{}
	}
	known := o.IsKnown() // else what is said of a release would be another thing in a moment
	all, rollouts := o.verdicts(), map[content.Object]*objectRollout{}
	if known {
		rollouts = o.rollouts(p)
	}
	starts := o.beginnings(p)
	addKeys(all, o.Records)
	addKeys(all, rollouts)
	addKeys(all, starts.rolls)
	if len(all) == 0 {
		return nil, time.Time{}
	}
	users := o.usersOf(func(object content.Object) bool { _, has := all[object]; return has })
	o.addGone(all, users)
	for _, object := range slices.SortedFunc(maps.Keys(all), content.Object.Compare) {
		digest, writer := contentFor(users[object], object)
		after := verdict.Record(object, digest, all[object])
		permits, awaiting := starts.add(after, o.Records[object], object, digest, o.Now)
		o.addRollout(after, o.Records[object], rollouts[object], known, digest, writer)
		if after.Rollout == nil && known && !permits { // nothing rolls for it any more
			after.Before = nil
		}
		write := recordWrite(o.Records[object], after)
		write.Permits, write.Awaiting = write.judges || permits, awaiting
		due := write.due(every)
		switch {
		case write.isMade():
		case write.Permits || !due.After(o.Now):
			writes = append(writes, write)
		default:
			again = ring.Earlier(again, due)
		}
	}
	return writes, again
}

// addGone adds the verdicts of workloads that are gone, as far as a user of the object does not know better.
func (o *Observed) addGone(all map[content.Object][]verdict.Verdict, users map[content.Object]*Workload) {
	for _, g := range o.Gone {
		if user := users[g.Object()]; user == nil || user.keepsGone(&g.Failed, o.Now) {
			all[g.Object()] = append(all[g.Object()], g)
		}
	}
}

// contentFor is the digest of an object as one of its users has it, and who wrote that, both empty without a user.
func contentFor(user *Workload, object content.Object) (digest, writer string) {
	if user == nil {
		return "", ""
	}
	digest, _ = user.Config.DigestOf(object)
	return digest, user.Config.Writer(object)
}

// addKeys adds the objects of another map, without verdicts if they are new.
func addKeys[V any](all map[content.Object][]verdict.Verdict, of map[content.Object]V) {
	for object := range of {
		all[object] = slices.Clip(all[object])
	}
}

// recordWrite is the write of a record, which is deleted if it has nothing to say.
func recordWrite(before, after *v1alpha1.ConfigRollout) RecordWrite {
	if len(after.Failures) == 0 && after.Rollout == nil && after.Paused == nil && after.Before == nil {
		after = nil
	}
	return RecordWrite{Before: before, After: after, judges: !equality.Semantic.DeepEqual(verdict.Failures(before), verdict.Failures(after))}
}

// due is when the write may be made that permits nothing.
func (w *RecordWrite) due(every time.Duration) time.Time {
	if w.Before == nil || w.Before.Rollout == nil {
		return time.Time{}
	}
	return w.Before.Rollout.DecidedAt.Add(every)
}

// verdicts are the failures of the workloads that exist, by object.
func (o *Observed) verdicts() map[content.Object][]verdict.Verdict {
	all := map[content.Object][]verdict.Verdict{}
	for i := range o.Workloads {
		w := &o.Workloads[i]
		for _, f := range w.failed(o.Now) {
			if !w.mayRecord(&f) {
				continue
			}
			if f.At.After(o.Now) { // a user wrote that
				f.At = o.Now.UTC().Truncate(time.Millisecond)
			}
			all[f.Object()] = append(all[f.Object()], verdict.Verdict{On: w.Name, Failed: f})
		}
	}
	return all
}

// mayRecord is true of a failure that is recorded, and of one with an object that the workload knows. What
// a user has written on it makes no record of an object that it may not use.
func (w *Workload) mayRecord(f *workload.Failed) bool {
	_, knows := w.Config.Release(f.Object())
	return knows || slices.ContainsFunc(w.Records.Recorded, f.IsAgain)
}

// isMade is true if the record says what it has to.
func (w *RecordWrite) isMade() bool {
	if w.Before == nil || w.After == nil {
		return w.Before == w.After
	}
	before, after := *w.Before, *w.After
	before.TypeMeta, before.ObjectMeta, after.TypeMeta, after.ObjectMeta = metav1.TypeMeta{}, metav1.ObjectMeta{}, metav1.TypeMeta{}, metav1.ObjectMeta{}
	same := ring.SaysTheSame(before.Rollout, after.Rollout)
	before.Rollout, after.Rollout = nil, nil
	return same && equality.Semantic.DeepEqual(before, after)
}

// usersOf are, for each of some objects, the first workload that uses it and knows its content.
func (o *Observed) usersOf(wanted func(content.Object) bool) map[content.Object]*Workload {
	users := map[content.Object]*Workload{}
	for i := range o.Workloads {
		w := &o.Workloads[i]
		if !w.Settings.Tracked {
			continue
		}
		for object := range w.Config {
			if users[object] != nil || !wanted(object) {
				continue
			}
			if _, knows := w.Config.Release(object); knows { // last: it hashes
				users[object] = w
			}
		}
	}
	return users
}

// usersOfGone are those of the objects with which workloads have failed that do not exist any more.
func (o *Observed) usersOfGone() map[content.Object]*Workload {
	if len(o.Gone) == 0 {
		return nil
	}
	objects := map[content.Object]bool{}
	for i := range o.Gone {
		objects[o.Gone[i].Object()] = true
	}
	return o.usersOf(func(object content.Object) bool { return objects[object] })
}

// wakeForGone is when a retry of the future ends such a failure, zero for never.
func (o *Observed) wakeForGone() time.Time {
	wake := time.Time{}
	for _, user := range o.usersOfGone() {
		for _, at := range user.Config.Retries() {
			if at.After(o.Now) {
				wake = ring.Earlier(wake, at)
			}
		}
	}
	return wake
}

// keepsGone is true if a failure of a workload that does not exist any more may still count, as a
// workload that uses the object sees it: no user has asked to try again, and there is no new content.
func (w *Workload) keepsGone(f *workload.Failed, now time.Time) bool {
	digest, exists := w.Config.DigestOf(f.Object())
	return w.counts(f.Object(), f.At, now) && (!exists || digest == f.Digest)
}

// isMoved is true once all that an earlier manager has recorded on the workload is where the manager
// alone writes, or does not count any more.
func (w *Workload) isMoved(now time.Time) bool {
	return !slices.ContainsFunc(w.failed(now), func(f workload.Failed) bool {
		return !slices.ContainsFunc(w.Records.Recorded, f.IsAgain)
	})
}
