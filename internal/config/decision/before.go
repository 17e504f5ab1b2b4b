package decision

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/message"
)

// mostBefore is how many workloads a record names that were not ready before.
const mostBefore = 500

// beginnings are the workloads that are rolled in this pass, by the objects of their namespace that they are rolled
// for, and all that are not ready.
type beginnings struct {
	rolls   map[content.Object][]*Workload
	unready []*Workload
}

// beginnings finds them.
func (o *Observed) beginnings(p *Plan) beginnings {
	b, place := beginnings{rolls: map[content.Object][]*Workload{}}, p.places()
	for i := range o.Workloads {
		w := &o.Workloads[i]
		if w.Settings.Tracked && !w.isUp() && !workload.HasNoPods(w.Object) {
			b.unready = append(b.unready, w)
		}
		if _, steps := place[w.Name]; !steps || !w.isRolled(o.Now) {
			continue
		}
		for _, r := range w.Lacks(w.Change.Keys) {
			if r.Object.Namespace == w.Namespace {
				b.rolls[r.Object] = append(b.rolls[r.Object], w)
			}
		}
	}
	return b
}

// isRolled is true of a workload whose step is to get the present config for another one.
func (w *Workload) isRolled(now time.Time) bool {
	return w.Settings.Tracked && w.Hashes != nil && w.Accepted() != "" && w.back == nil && w.stuck == nil && !w.IsTemplateSettled() && !w.putOff(now)
}

// add adds to the record of an object how its workloads do before they are rolled. It permits that if it is not recorded
// yet, and returns those that must not be rolled before it is.
func (b *beginnings) add(after, before *v1alpha1.ConfigRollout, object content.Object, digest string, now time.Time) (permits bool, awaiting []workload.Name) {
	if before != nil {
		after.Before = b.carry(before, object, digest)
	}
	var known []v1alpha1.NotReadyWorkload
	if after.Before != nil {
		known = after.Before.NotReady
	}
	rolls := b.rolls[object]
	if len(rolls) == 0 {
		return false, nil
	}
	fresh := b.fresh(object, after.Before == nil, now)
	differs := func(w *Workload) bool { return entryOf(known, w.Name) != entryOf(fresh, w.Name) }
	lacks := func(e v1alpha1.NotReadyWorkload) bool { return e.Hash == "" && !slices.Contains(known, e) }
	isNews := slices.ContainsFunc(rolls, differs)
	if after.Before != nil && !isNews {
		return false, nil
	}
	if isNews || slices.ContainsFunc(fresh, lacks) {
		for _, w := range rolls {
			awaiting = append(awaiting, w.Name)
		}
	}
	isStale := func(e v1alpha1.NotReadyWorkload) bool {
		name := workload.Name{Kind: e.Kind, Namespace: object.Namespace, Name: e.Name}
		return slices.Contains(awaiting, name) || entryOf(fresh, name) != v1alpha1.NotReadyWorkload{}
	}
	all := append(slices.DeleteFunc(slices.Clone(known), isStale), fresh...)
	slices.SortFunc(all, func(a, b v1alpha1.NotReadyWorkload) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	after.Before = &v1alpha1.ConfigBefore{Digest: digest, NotReady: all[:min(len(all), mostBefore)]}
	return true, awaiting
}

// carry is what is recorded of the present content. That of an object that was created again has another digest: it
// is the same for a workload that has it, and was not rolled for it.
func (b *beginnings) carry(before *v1alpha1.ConfigRollout, object content.Object, digest string) *v1alpha1.ConfigBefore {
	switch was := before.Before; {
	case was == nil || was.Digest == digest:
		return was
	case before.Rollout == nil:
		return nil
	}
	is := &v1alpha1.ConfigBefore{Digest: digest}
	for _, w := range b.unready {
		e := entryOf(before.Before.NotReady, w.Name)
		if w.Namespace == object.Namespace && e.Name != "" && w.IsCurrent() && w.Config.IsCreatedSince(object, before.Rollout.StartedAt.Time) {
			is.NotReady = append(is.NotReady, e)
		}
	}
	if len(is.NotReady) == 0 {
		return nil
	}
	return is
}

// fresh are the workloads that are not ready and are next for the content of an object; before the first of these also
// those that have it: what they do is the result of no roll.
func (b *beginnings) fresh(object content.Object, isFirst bool, now time.Time) (entries []v1alpha1.NotReadyWorkload) {
	for _, w := range b.unready {
		if w.Namespace != object.Namespace || !w.uses(object) {
			continue
		}
		r, _ := w.Config.Release(object)
		e := v1alpha1.NotReadyWorkload{Kind: w.Kind, Name: w.Name.Name}
		switch {
		case w.isNext(r) && w.Accepted() != "" && w.isUnreadyBefore(now):
			e.Hash = w.Accepted()
			e.Available, e.Failing = w.baseline(now)
			e.Failing = message.Cut(e.Failing, message.ValueLength)
			entries = append(entries, e)
		case isFirst && w.IsCurrent() && !w.mayFail(now):
			entries = append(entries, e)
		}
	}
	return entries
}

// uses is true of a workload that an object rolls.
func (w *Workload) uses(object content.Object) bool {
	return slices.ContainsFunc(w.Uses, func(u content.Use) bool { return u.Object == object && !u.Ignored })
}

// entryOf is what a list says of a workload, nothing if it was ready.
func entryOf(all []v1alpha1.NotReadyWorkload, of workload.Name) v1alpha1.NotReadyWorkload {
	i := slices.IndexFunc(all, func(e v1alpha1.NotReadyWorkload) bool { return e.Kind == of.Kind && e.Name == of.Name })
	if i < 0 {
		return v1alpha1.NotReadyWorkload{}
	}
	return all[i]
}

// Recall has a workload on which nothing says any more with what it got its present config know that: as the manager
// has seen it before, or by the records. By these it was rolled for the contents that are under way, and was ready before
// if they do not say otherwise.
func (o *Observed) Recall(w *Workload) {
	if w.Was.Hash != "" {
		if w.IsForgotten(o.Now) && (w.Template.Hash == w.Was.Hash || w.Template.Hash == "") {
			w.Records.Roll = w.Was.Roll
			w.recalled = w.Template.Hash != "" || w.Hashes != nil && w.Hashes.Desired == w.Was.Hash
		}
		return
	}
	changed, is, found := o.recorded(w)
	if !found || w.Template.Hash == "" && is.Hash == "" { // it may never have had a hash
		return
	}
	roll := workload.Roll{Changed: changed}
	roll.At = o.Now.UTC().Truncate(time.Millisecond) // it is not known when, and it has the full time from now on
	for _, f := range w.Records.Failed {
		if w.isPresent(f) && f.At.Before(roll.At) {
			roll.At = f.At
		}
	}
	roll.Template, roll.Hash = workload.TemplateDigest(w.Object), w.rolledTo(w.Template.Hash)
	if is.Name != "" {
		roll.Unready, roll.Was, roll.Available, roll.Failing = true, is.Hash, is.Available, is.Failing
	}
	w.Records.Roll, w.recalled = roll, true
}

// recorded is what the records say of a workload on which nothing says it any more: what has changed, and how it was before
// the latest of these began to be rolled. Found is false if none of them is about it.
func (o *Observed) recorded(w *Workload) (changed []string, is v1alpha1.NotReadyWorkload, found bool) {
	var latest metav1.MicroTime
	for i := range w.Uses {
		object := w.Uses[i].Object
		r := o.Records[object]
		if w.Uses[i].Ignored || object.Namespace != w.Namespace || !w.forgets(r, o.Now) {
			continue
		}
		if moved := *r.Rollout.MovedAt; latest.Before(&moved) {
			latest, is = moved, v1alpha1.NotReadyWorkload{}
		}
		if r.Rollout.MovedAt.Equal(&latest) {
			is = cmp.Or(is, entryOf(r.Before.NotReady, w.Name))
		}
		changed = append(changed, r.Rollout.Changed...)
	}
	return changed, is, !latest.IsZero()
}

// forgets is true of a workload that existed when others began to be rolled for the present content of an object, and
// on which nothing says that it was.
func (w *Workload) forgets(r *v1alpha1.ConfigRollout, now time.Time) bool {
	if r == nil || r.Before == nil || r.Rollout == nil || r.Rollout.MovedAt == nil || r.Before.Digest != r.Rollout.Target || !w.Settings.Tracked {
		return false
	}
	is, moved := r.Rollout, r.Rollout.MovedAt.Truncate(time.Millisecond)
	if is.FinishedAt != nil && !now.Before(is.FinishedAt.Add(workload.SettlesWithin(w.Object))) || !w.IsForgotten(moved) {
		return false
	}
	digest, exists := w.Config.DigestOf(content.Object{Kind: content.Kind(r.Object.Kind), Namespace: r.Namespace, Name: r.Object.Name})
	return exists && digest == is.Target
}
