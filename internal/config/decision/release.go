package decision

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/replay"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// Stop is why a workload is not rolled for a release.
type Stop struct {
	Reason  rollout.Reason
	Release content.Release
	// On is the workload that has failed with it, or may have, and Cause how.
	On    workload.Name
	Cause string
	// Until is when the workload on which it failed counts as recovered, if it is ready.
	Until time.Time
	// said is the sentence without what changes while it holds.
	said string
	// kept is what the workloads that wait for the same keep, on the place of the one that has failed.
	kept workload.Keepings
	on   int
}

// Message is the stop as a sentence.
func (s *Stop) Message() string {
	if s.Reason != ReasonConfigFailed {
		return s.said
	}
	return s.said + soakText(s.Until) + keptText(s.kept)
}

// soakText is what follows of a workload that failed and is ready again.
func soakText(until time.Time) string {
	if until.IsZero() {
		return ""
	}
	return "; it is ready, soaking until " + rollout.Clock(until)
}

func keptText(kept workload.Keepings) string {
	if text := kept.Text(); text != "" {
		return "; " + text
	}
	return ""
}

// judge finds out which workloads have failed with their config, and which ones are stopped
// by that. It returns a copy of what was observed, or the same if nothing has failed.
func judge(o Observed, options Options) Observed {
	if options.KeepGoing {
		return o
	}
	j := &judgment{now: o.Now, o: &o, workloads: o.Workloads, releases: map[releaseIn]*underway{}}
	if !j.addTrials() {
		return o
	}
	j.workloads = slices.Concat(o.Workloads, j.gone)
	j.addStopped()
	j.conclude(replay.Decide("failures of config", rollout.Observed{Now: o.Now, Root: j.tree()}))
	o.Workloads = j.workloads[:len(o.Workloads):len(o.Workloads)]
	return o
}

// releaseIn is a release, and a namespace whose workloads it is for. Failures elsewhere count
// only where the owner of the object says so.
type releaseIn struct {
	content.Release

	namespace string
}

// underway is a release that some workloads are rolled for, and others are not yet.
type underway struct {
	// ran and next are the places of the workloads, each in the order of their names.
	ran, next []int
	trials    []rollout.Unit
	// unknown is the first workload of which it is not known whether it works, and why.
	unknown     int
	unknownText string
}

// judgment is the releases that something may be wrong with.
type judgment struct {
	now       time.Time
	o         *Observed
	workloads []Workload
	// gone follow the workloads: those that have failed and do not exist any more.
	gone []Workload
	// trials are the releases of each workload that failed or may have, with their places by
	// release.
	trials   []trial
	trialsOf map[content.Release][]int
	releases map[releaseIn]*underway
}

// trial is a workload that was rolled for a release, and may have failed with it.
type trial struct {
	workload int
	release  content.Release
	unit     rollout.Unit
	// present is true if it has the config now.
	present bool
	// at is when it failed first, now if that is not recorded.
	at      time.Time
	unknown string
}

// addTrials finds what was rolled and may have failed. It is false if there is nothing.
func (j *judgment) addTrials() bool {
	for i := range j.workloads {
		w := &j.workloads[i]
		if !w.Settings.Tracked || w.Settings.Unstoppable {
			continue
		}
		j.addRecorded(i, w)
		j.addMixed(i, w)
		for _, r := range w.onTrialFor(j.now) {
			if w.recorded(r, j.now) == nil {
				j.trials = append(j.trials, trial{workload: i, release: r, unit: w.onTrial(j.now), present: true, at: j.now, unknown: w.unknown(j.now)})
			}
		}
	}
	j.addGone()
	// What failed first is named first, so that sentences stay as they are when more fails.
	slices.SortStableFunc(j.trials, func(a, b trial) int { return a.at.Compare(b.at) })
	j.trialsOf = map[content.Release][]int{}
	for i := range j.trials {
		j.trialsOf[j.trials[i].release] = append(j.trialsOf[j.trials[i].release], i)
	}
	return len(j.trials) > 0
}

// addRecorded adds the failures that are recorded, with the config that objects have now.
// They count also where the workload went back to another config, and where the object was just deleted: others
// may still see it with the content that has failed.
func (j *judgment) addRecorded(i int, w *Workload) {
	for k := range w.Records.Failed {
		f := &w.Records.Failed[k]
		if r, ok := w.Config.Release(f.Object()); ok && w.isUncompared(f) {
			unit := rollout.Unit{Name: w.called(w.Namespace), Leaf: rollout.Leaf{Current: released, Target: released, Health: rollout.Progressing}}
			unit.Policy.Deadline = noDeadline
			j.trials = append(j.trials, trial{workload: i, release: r, unit: unit, at: f.At, unknown: w.called(w.Namespace) + " failed with it before it was created again, and its content is read next"})
			continue
		}
		if _, exists := w.Config.DigestOf(f.Object()); exists && !w.isPresent(*f) || !w.keeps(f, j.now) {
			continue
		}
		unit := rollout.Unit{Name: w.called(w.Namespace), Leaf: failedLeaf(f.Cause)}
		r := content.Release{Object: f.Object(), Digest: f.Digest}
		j.trials = append(j.trials, trial{workload: i, release: r, unit: unit, at: f.At, present: w.isPresent(*f) && w.IsCurrent() && w.Runs(r)})
	}
}

// isUncompared is true of a failure with an object that was created again since, until it is read whether the
// content is another one: digests do not tell, and the hash of the workload does.
func (w *Workload) isUncompared(f *workload.Failed) bool {
	reads := w.Hashes == nil && !w.Unchanged && len(w.Missing) == 0 && len(w.Denied) == 0 && w.Retry == nil
	return reads && f.Hash != "" && !w.isPresent(*f) && w.Config.IsCreatedSince(f.Object(), f.At)
}

// failedLeaf is a workload that has failed with a release, as the engine sees it.
func failedLeaf(cause string) rollout.Leaf {
	return rollout.Leaf{Current: released, Target: released, Health: rollout.Failed, Reason: cause}
}

// addGone adds the failures that are recorded of workloads that do not exist any more, as far as they
// are about the content that others would be rolled for.
func (j *judgment) addGone() {
	users := j.o.usersOfGone()
	for i := range j.o.Gone {
		g := &j.o.Gone[i]
		user := users[g.Object()]
		if user == nil || !user.isPresent(g.Failed) || !user.counts(g.Object(), g.At, j.now) {
			continue
		}
		w := Workload{Workload: workload.Workload{Name: g.On}}
		r, _ := user.Config.Release(g.Object())
		unit := rollout.Unit{Name: w.called(w.Namespace), Leaf: failedLeaf(g.Cause)}
		j.trials = append(j.trials, trial{workload: len(j.o.Workloads) + len(j.gone), release: r, unit: unit, at: g.At})
		j.gone = append(j.gone, w)
	}
}

// unknown is why it is not known yet whether a workload works with its config.
func (w *Workload) unknown(now time.Time) string {
	switch {
	case w.Pods.Unknown != "":
		return "the Pods of " + w.called(w.Namespace) + " are not known: " + w.Pods.Unknown
	case w.isOverdue(now):
		return w.called(w.Namespace) + " is not ready after 10m"
	default:
		return ""
	}
}

// addStopped finds the workloads that would be rolled for the same releases.
func (j *judgment) addStopped() {
	for i := range j.workloads {
		w := &j.workloads[i]
		if !w.Settings.Tracked || w.Settings.Unstoppable || w.Hashes == nil || w.IsCurrent() {
			continue
		}
		for _, r := range w.Lacks(w.Change.Keys) {
			if !j.o.policyFor(w, r.Object).Tolerates() || w.recorded(r, j.now) != nil { // else its stages decide
				j.addNext(i, w, r)
			}
		}
	}
}

// addNext adds a workload to a release that others were rolled for.
func (j *judgment) addNext(i int, w *Workload, r content.Release) {
	in := releaseIn{r, w.Namespace}
	u := j.releases[in]
	if u == nil {
		u = &underway{unknown: -1}
		j.releases[in] = u
		for _, k := range j.trialsOf[r] {
			t := &j.trials[k]
			if w.Config.CountsIn(r.Object, j.workloads[t.workload].Namespace, w.Namespace) {
				u.add(t, &j.workloads[t.workload], w.Namespace)
			}
		}
	}
	u.next = append(u.next, i)
}

func (u *underway) add(t *trial, w *Workload, namespace string) {
	t.unit.Name = w.called(namespace)
	u.ran, u.trials = append(u.ran, t.workload), append(u.trials, t.unit)
	if t.unknown != "" && u.unknown < 0 {
		u.unknown, u.unknownText = t.workload, t.unknown
	}
}

// The parts of a release: the workloads that have it, and those that would get it.
const (
	ran  = "ran"
	next = "next"
)

// inOrder are the releases that stop something, in an order that does not change.
func (j *judgment) inOrder() []releaseIn {
	var ordered []releaseIn
	for in, u := range j.releases {
		if len(u.ran) > 0 {
			ordered = append(ordered, in)
		}
	}
	slices.SortFunc(ordered, func(a, b releaseIn) int { return strings.Compare(a.path(), b.path()) })
	return ordered
}

func (in releaseIn) path() string { return in.namespace + " " + in.From("") }

// tree is the input of the engine: each trial for itself, and each release that stops
// something.
func (j *judgment) tree() rollout.Unit {
	root := rollout.Unit{Policy: rollout.Policy{OnFailure: rollout.Continue}}
	trials := rollout.Unit{Name: ran, Group: true, Policy: rollout.Policy{OnFailure: rollout.Continue}}
	for i := range j.trials {
		unit := j.trials[i].unit
		unit.Name = fmt.Sprint(i)
		trials.Children = append(trials.Children, unit)
	}
	root.Children = append(root.Children, trials)
	for _, in := range j.inOrder() {
		root.Children = append(root.Children, j.unit(in, j.releases[in]))
	}
	return root
}

// unit is a release as the engine sees it: nothing of it is done once something of it has
// failed.
func (j *judgment) unit(in releaseIn, u *underway) rollout.Unit {
	waiting := rollout.Unit{Name: next, Group: true}
	for _, i := range u.next {
		w := &j.workloads[i]
		waiting.Children = append(waiting.Children, rollout.Unit{Name: w.called(""), Leaf: rollout.Leaf{Current: earlier, Target: released, Health: rollout.Healthy}})
	}
	if u.unknown >= 0 {
		waiting.Block = &rollout.Block{Reason: ReasonConfigUnverified, Message: u.unknownText}
	}
	return rollout.Unit{Name: in.path(), Policy: rollout.Policy{OnFailure: rollout.Stop}, Children: []rollout.Unit{
		{Name: ran, Group: true, Children: u.trials}, waiting,
	}}
}

// conclude notes on the workloads what the engine has decided.
func (j *judgment) conclude(plan rollout.Plan) {
	holds := make(map[string]*rollout.Hold, len(plan.Holds))
	for i := range plan.Holds {
		holds[plan.Holds[i].Path.String()] = &plan.Holds[i]
	}
	for i := range j.trials {
		t := &j.trials[i]
		if h := holds[rollout.Path{ran, fmt.Sprint(i)}.String()]; t.present && isFailure(h) {
			j.workloads[t.workload].fail(t.release, causeIn(h), j.now)
		}
	}
	for _, in := range j.inOrder() {
		j.stop(in, holds)
	}
	for i := range j.workloads {
		if s := j.workloads[i].stop; s != nil && s.Reason == ReasonConfigFailed {
			j.workloads[s.on].kept[j.workloads[i].KeepingOf(s.Release)]++
		}
	}
	j.goBack()
}

func isFailure(h *rollout.Hold) bool {
	return h != nil && (h.Reason == rollout.ReasonFailed || h.Reason == rollout.ReasonDeadline)
}

// causeIn is how a leaf has failed.
func causeIn(h *rollout.Hold) string { return cmp.Or(h.Cause.Why, "not ready") }

// fail notes a failure. The cause of the first release stands for all.
func (w *Workload) fail(r content.Release, cause string, now time.Time) {
	if w.failure == nil {
		w.failure = &Failure{Cause: cause}
		if at := w.recoversAt(); at.After(now) {
			w.failure.Until = at
		}
	}
	w.failure.Releases = append(w.failure.Releases, r)
}

// stop notes for each workload that a release stops, why. Of several releases the first
// that has failed counts.
func (j *judgment) stop(in releaseIn, holds map[string]*rollout.Hold) {
	u := j.releases[in]
	for _, i := range u.next {
		w := &j.workloads[i]
		h := holds[rollout.Path{in.path(), next, w.called("")}.String()]
		if h == nil || w.stop != nil && (w.stop.Reason == ReasonConfigFailed || !isFailure(h)) {
			continue
		}
		w.stop = j.stopOf(in, h, holds)
	}
}

// stopOf is why a release does not go on.
func (j *judgment) stopOf(in releaseIn, h *rollout.Hold, holds map[string]*rollout.Hold) *Stop {
	u, release := j.releases[in], in.From(in.namespace)
	if !isFailure(h) {
		w := &j.workloads[u.unknown]
		return &Stop{Reason: ReasonConfigUnverified, Release: in.Release, On: w.Name, on: u.unknown, said: release + " is not verified: " + u.unknownText}
	}
	on := max(0, slices.IndexFunc(u.trials, func(t rollout.Unit) bool { return len(h.On) > 0 && t.Name == h.On[len(h.On)-1] }))
	s := &Stop{Reason: ReasonConfigFailed, Release: in.Release, On: j.workloads[u.ran[on]].Name, on: u.ran[on], kept: j.keptBy(in, u)}
	if failed := holds[h.On.String()]; failed != nil {
		s.Cause = causeIn(failed)
	}
	if f := j.workloads[s.on].failure; f != nil {
		s.Until = f.Until
	}
	s.said = fmt.Sprintf("%s failed on %s (%s)", release, u.trials[on].Name, s.Cause)
	return s
}

// keptBy is what the workloads keep that a release does not get to.
func (j *judgment) keptBy(in releaseIn, u *underway) (kept workload.Keepings) {
	for _, i := range u.next {
		kept[j.workloads[i].KeepingOf(in.Release)]++
	}
	return kept
}

// startsBy is when Pods must be ready that got room late, zero if there are none.
func (w *Workload) startsBy(now time.Time) time.Time {
	if at := w.Pods.LastStart; !at.IsZero() && w.startsLate(now) && w.mayFail(now) {
		return at.Add(w.timeToStart())
	}
	return time.Time{}
}

// wake is when time alone changes what is judged, zero for never.
func (w *Workload) wake(now time.Time) time.Time {
	wake := time.Time{}
	if at := workload.StallsAt(w.Object); at.After(now) && w.mayFail(now) {
		wake = at
	}
	wake = ring.Earlier(wake, w.startsBy(now))
	if w.isProving(now) && w.Records.Roll.Unready || w.rolling(now) && w.isMute() { // others may wait for it until then
		wake = ring.Earlier(wake, w.lasts(now))
	}
	if w.rolling(now) && (!w.IsSettled() || w.lacksRoom(now) != "") { // it has no deadline, and its place in the budget until then
		wake = ring.Earlier(wake, w.Rolled.Add(workload.ProgressDeadline))
	}
	if len(w.Records.Failed) == 0 && w.failure == nil {
		return wake
	}
	for _, at := range append(w.Config.Retries(), w.recoversAt()) {
		if at.After(now) {
			wake = ring.Earlier(wake, at)
		}
	}
	return wake
}
