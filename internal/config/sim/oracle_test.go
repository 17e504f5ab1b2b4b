package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/workload"
)

// ofBefore follows a value that an object had before it was created again.
const ofBefore = " of before"

// reached is an object with a value.
type reached struct {
	object content.Object
	value  string
}

// oracle knows the rules, and nothing of the plan.
type oracle struct {
	world *world
	// mu is held while the ring writes, as it makes several writes at a time.
	mu     sync.Mutex
	byRing bool
	// writes are those of the ring but for those that only say how far a content has come, which are said.
	writes, said int
	// failed are the values of which a failure is recorded; of these, ambiguous is what may be good.
	failed map[content.Object]map[string]bool
	// judged are the failures that are known: of a workload, at a time. They are recorded again with another
	// digest when the object is created again, which says nothing new of the workload.
	judged map[string]bool
	// reach are the workloads that the ring has rolled for a value, and that can show whether it is good.
	reach map[reached][]*unit
	// digests are what digests stand for.
	digests    map[string]reached
	violations []string
	// sees is the value of an object that the manager sees.
	sees    func(content.Object) string
	changes []change
}

func (o *oracle) complainf(format string, args ...any) {
	o.violations = append(o.violations, fmt.Sprintf(format, args...))
	o.world.notef("WRONG: "+format, args...)
}

// edited begins a content: what was rolled for it before does not count.
func (o *oracle) edited(object content.Object, value string) {
	if o.world.live[object] != value {
		delete(o.reach, reached{object, value})
	}
}

// change is a write that was made.
type change struct{ before, after client.Object }

// key orders the writes of a pass: records come first.
func (c *change) key() string {
	obj := c.after
	if obj == nil {
		obj = c.before
	}
	if _, isRecord := obj.(*v1alpha1.ConfigRollout); isRecord {
		return ""
	}
	return fmt.Sprintf("%T %s", obj, obj.GetName())
}

// changed receives each write, while the API server is locked.
func (o *oracle) changed(before, after client.Object) {
	o.changes = append(o.changes, change{before, after})
}

// check checks the writes so far.
func (o *oracle) check() {
	changes := o.changes
	o.changes = nil
	if o.byRing { // several are made at a time
		slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.key(), b.key()) })
	}
	for _, c := range changes {
		o.checkChange(c.before, c.after)
	}
}

func (o *oracle) checkChange(before, after client.Object) {
	if o.byRing {
		if onlySays(before, after) {
			o.said++
		} else {
			o.writes++
		}
		if after != nil {
			o.world.notef("the manager writes %T %s", after, after.GetName())
		}
	}
	if r, ok := after.(*v1alpha1.ConfigRollout); ok {
		o.recorded(r)
	}
	if r, ok := before.(*v1alpha1.ConfigRollout); ok && after == nil {
		gone := r.DeepCopy()
		gone.Failures = nil
		o.recorded(gone)
	}
	if !o.byRing || before == nil || after == nil {
		return
	}
	switch after.(type) {
	case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet:
		if is := workload.TemplateOf(after); fingerprint(workload.TemplateOf(before)) != fingerprint(is) {
			o.rolled(o.world.unit(workload.KindOf(after), after.GetName()), workload.TemplateOf(before), is)
		}
	}
}

// onlySays is true of a record that changes and has the same failures.
func onlySays(before, after client.Object) bool {
	failures := func(obj client.Object) ([]v1alpha1.ConfigFailure, bool) {
		if obj == nil {
			return nil, true
		}
		r, ok := obj.(*v1alpha1.ConfigRollout)
		if !ok {
			return nil, false
		}
		return r.Failures, true
	}
	was, isRecord := failures(before)
	is, stays := failures(after)
	return isRecord && stays && equality.Semantic.DeepEqual(was, is)
}

func (w *world) unit(kind, name string) *unit {
	for _, u := range w.units {
		if u.kind == kind && u.name == name {
			return u
		}
	}
	return &unit{}
}

// recorded checks what is recorded of an object.
func (o *oracle) recorded(r *v1alpha1.ConfigRollout) {
	w := o.world
	object := content.Object{Kind: content.Kind(r.Object.Kind), Namespace: r.Namespace, Name: r.Object.Name}
	is := map[string]bool{}
	for _, f := range r.Failures {
		what, known := o.digests[f.Digest]
		if !known {
			o.complainf("%s is said to have failed with a content that it never had", r.Name)
			continue
		}
		is[what.value] = true
		for _, on := range f.Workloads {
			u := w.unit(on.Kind, on.Name)
			w.notef("recorded: %s %s failed on %s (%s)", object.Name, what.value, on.Name, f.Cause)
			key := fmt.Sprint(object, on.Kind, on.Name, on.At.UTC())
			if fresh := !o.failed[object][what.value] && !o.judged[key]; fresh && (u.ranBad.IsZero() || u.ranBad.Before(w.now.Add(-3*time.Minute))) && u.name != "" {
				o.complainf("%s %s is given up for %s, of which no Pod ran a bad content: %s", object.Name, what.value, on.Name, f.Cause)
			}
			o.judged[key] = true
			w.count("failures")
		}
	}
	for value := range o.failed[object] {
		// As long as the manager sees the object as it was before it was created again, it is recorded of that.
		if !is[value] && !is[value+ofBefore] && w.live[object] == value && isBad(value) && w.isUsed(object) {
			o.complainf("that %s failed with %s is forgotten", object.Name, value)
		}
	}
	o.failed[object] = is
}

// isUsed is true of an object that a tracked workload uses.
func (w *world) isUsed(o content.Object) bool {
	return slices.ContainsFunc(w.units, func(u *unit) bool {
		obj := u.object(w)
		return obj != nil && workload.IsTracked(obj) && slices.Contains(u.uses, o)
	})
}

// lookForAilments notes that a workload crashes, and not for what the ring has rolled it for: so it may crash
// afterwards, whatever it is rolled for, until it was ready for some time.
func (o *oracle) lookForAilments(u *unit) {
	switch {
	case slices.ContainsFunc(u.pods, func(p *pod) bool { return p.crashed }):
		u.ailing = u.ailing || !slices.ContainsFunc(u.uses, func(object content.Object) bool {
			return slices.Contains(o.reach[reached{object, u.has[object]}], u)
		})
	case u.isReady(o.world.now.Add(-lag)):
		u.ailing = false
	}
}

// rolled checks the rules in the moment in which the ring rolls a workload.
func (o *oracle) rolled(u *unit, before, after *corev1.PodTemplateSpec) {
	w := o.world
	w.count("rolls")
	u.earlier = append([]corev1.PodTemplateSpec{*before}, u.earlier...)
	changes, lags, byHand := false, false, u.unhashed
	u.shows = nil
	shows := map[content.Object]string{}
	for _, object := range u.uses {
		value := w.live[object]
		if o.sees(object) != value { // what it has from now on is not what its Pods start with
			u.has[object], lags = "", true
			continue
		}
		if u.has[object] == value {
			continue
		}
		changes = true
		if u.has[object] == "" { // a user has rolled it before
			u.has[object] = value
			continue
		}
		if o.failed[object][value] && isBad(value) && !byHand {
			o.complainf("%s is rolled for %s %s, which has failed", u.name, object.Name, value)
		}
		if isBad(value) && w.canTell(u) && !byHand && !u.ailing {
			o.reaches(u, reached{object, value})
			shows[object] = value
		}
		u.has[object] = value
	}
	u.hasOf[fingerprint(after)] = maps.Clone(u.has)
	w.notef("%s is rolled for %v", u.name, u.has)
	if !changes && !lags && u.touched.IsZero() {
		o.complainf("%s is rolled for what it has: %v", u.name, u.has)
	}
	u.touched, u.unhashed = time.Time{}, false
	if lags {
		u.touched = w.now
		w.count("late looks")
	}
	// One that was down a moment ago, as far as the ring sees, or whose Pods are replaced because a user has changed its template, is
	// disrupted by the user alone; and one that cannot tell has no Pods, or none is replaced.
	if u.rolled = (time.Time{}); w.canTell(u) && u.isReady(w.now.Add(-lag)) && u.runs(before) {
		o.checkRolling(u)
		u.rolled, u.shows = w.now, shows
	}
}

// canTell is true of a workload that shows whether it works with a content.
func (w *world) canTell(u *unit) bool {
	obj := u.object(w)
	return !u.sick && u.noRoom == "" && u.replicas > 0 && obj != nil && !workload.IsHeldBack(obj)
}

// reaches checks how far a bad content has come.
func (o *oracle) reaches(u *unit, r reached) {
	o.reach[r] = append(slices.DeleteFunc(o.reach[r], func(old *unit) bool { return old == u }), u)
	o.world.count("bad rolls")
	if n := len(o.reach[r]); n > o.world.stage && !o.isDeceptive(r) {
		names := make([]string, n)
		for i, u := range o.reach[r] {
			names[i] = u.name
		}
		o.complainf("%s %s is rolled for %v, of which %d may be", r.object.Name, r.value, names, o.world.stage)
	}
}

// isDeceptive is true of a content that a workload seems to work with, because its Pods have started at another
// moment of an object that got the same content again.
func (o *oracle) isDeceptive(r reached) bool {
	return slices.ContainsFunc(o.world.units, func(u *unit) bool {
		return u.has[r.object] == r.value && len(u.pods) > 0 && u.isWhole(o.world) && !u.runsBad()
	})
}

// touches notes that a user has written a workload: it shows no more what the ring has rolled.
func (o *oracle) touches(u *unit) {
	u.touched = o.world.now
	o.excuse(u)
}

// excuse counts a workload no more among those that show what they were rolled for.
func (o *oracle) excuse(u *unit) {
	u.rolled, u.shows = time.Time{}, nil
	for r := range o.reach {
		o.reach[r] = slices.DeleteFunc(o.reach[r], func(old *unit) bool { return old == u })
	}
}

// checkRolling: no more workloads are rolled at a time than may be.
func (o *oracle) checkRolling(u *unit) {
	w := o.world
	if w.rolling == 0 {
		return
	}
	rolling := 1
	for _, other := range w.units {
		if other != u && !other.rolled.IsZero() && w.now.Sub(other.rolled) < workload.ProgressDeadline && w.canTell(other) && !other.runsBad() {
			rolling++
		}
	}
	if rolling > w.rolling {
		o.complainf("%d workloads are rolled at a time, %d may be, the last is %s", rolling, w.rolling, u.name)
	}
}

// lag is how late the ring may see what there is.
const lag = 30 * time.Second

// isReady is true if all Pods have been ready since some time.
func (u *unit) isReady(since time.Time) bool {
	return len(u.pods) >= u.replicas && !slices.ContainsFunc(u.pods, func(p *pod) bool { return !p.ready || p.since.After(since) })
}

// runs is true if all Pods have a template.
func (u *unit) runs(t *corev1.PodTemplateSpec) bool {
	is := fingerprint(t)
	return !slices.ContainsFunc(u.pods, func(p *pod) bool { return p.template != is })
}

func (u *unit) runsBad() bool {
	return slices.ContainsFunc(u.pods, func(p *pod) bool { return p.fate != good })
}

// look forgets that a workload is rolling once it is whole, and checks that it is recorded as a failure if
// it crashes.
func (o *oracle) look(u *unit) {
	o.lookForAilments(u)
	w := o.world
	if !u.rolled.IsZero() && u.isWhole(w) {
		u.rolled = time.Time{}
	}
	for object, value := range u.shows {
		if _, gone := w.absent[object]; gone || !u.isAsRolled(w) || o.failed[object][value] {
			u.shows = nil
		}
	}
	switch {
	case len(u.shows) == 0 || !u.crashesNow(w):
		u.crashes = time.Time{}
	case u.crashes.IsZero():
		u.crashes = w.now
	case w.now.Sub(u.crashes) > evident:
		o.complainf("%s crashes with %v since %s, and that is recorded nowhere", u.name, u.shows, u.crashes.Format("15:04:05"))
	}
}

// evident is how long a Pod crashes until that must be recorded.
const evident = 90 * time.Second

// isAsRolled is true if all that a workload uses is as it was when it was rolled.
func (u *unit) isAsRolled(w *world) bool {
	obj := u.object(w)
	return obj != nil && workload.IsTracked(obj) && !slices.ContainsFunc(u.uses, func(o content.Object) bool { return u.has[o] != w.live[o] })
}

// crashesNow is true if a Pod of the present template crashes.
func (u *unit) crashesNow(w *world) bool {
	obj := u.object(w)
	if obj == nil {
		return false
	}
	is := fingerprint(workload.TemplateOf(obj))
	return slices.ContainsFunc(u.pods, func(p *pod) bool { return p.crashed && p.template == is })
}

// isWhole is true if all Pods are ready, and of the present template.
func (u *unit) isWhole(w *world) bool {
	obj := u.object(w)
	if obj == nil || len(u.pods) != u.replicas {
		return false
	}
	is := fingerprint(workload.TemplateOf(obj))
	return !slices.ContainsFunc(u.pods, func(p *pod) bool { return !p.ready || p.template != is })
}
