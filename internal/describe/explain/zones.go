package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones"
	"github.com/spillway-dev/spillway/internal/zones/decision"
	"github.com/spillway-dev/spillway/internal/zones/scaling"
	"github.com/spillway-dev/spillway/rollout"
)

// groupDetails is how a group is rolled, and what its replicas wait for.
type groupDetails struct {
	decision.Explanation

	Replicas []string `json:"replicas,omitempty"`
}

// isComplete is true of a group whose zones are all where they should be.
func (a *asker) isComplete(ctx context.Context, ref describe.Ref) (bool, error) {
	e, err := a.explainGroup(ctx, ref)
	return e.Phase == string(rollout.PhaseComplete), err
}

// groupAnswer is the answer about a group, as it comes together.
type groupAnswer struct {
	answering

	e *decision.Explanation
}

// rollout goes on from the reason that tells most.
func (g *groupAnswer) rollout(ctx context.Context) error {
	cause := ring.TellingOf(g.e.Rollout)
	switch {
	case g.e.Missing:
		g.unmade()
	case g.e.Phase == string(describe.PhaseUnseen):
		g.own().Reason = ReasonNotObserved
		g.found.Then = g.aboutManager(g.ref.Namespace)
	case g.e.Reason == decision.ReasonInvalid:
		return g.fault(ctx)
	case g.e.Phase == string(rollout.PhaseComplete) || g.e.Phase == "":
	case cause == nil:
		g.found.Then = g.aboutManager(g.ref.Namespace)
	default:
		return g.waits(ctx, cause)
	}
	return nil
}

// waits goes on from the cause that says most of the whole.
func (g *groupAnswer) waits(ctx context.Context, cause *record.Cause) error {
	switch reason := rollout.Reason(cause.Reason); {
	case reason == rollout.ReasonPaused:
		return g.paused(ctx, g.path(cause))
	case reason == rollout.ReasonLocked:
		return g.locked(ctx)
	case reason.IsGate():
		links, err := g.atGate(ctx, g.ref)
		g.add(links...)
		return err
	case reason == decision.ReasonWindow:
	case reason == decision.ReasonNotObserved || reason == decision.ReasonDeleting:
		g.found.Then = g.firstUnseen(ctx)
	case reason == rollout.ReasonRetry:
		g.refused(ctx, g.path(cause)[0], g.e.Sentence)
	default:
		return g.held(ctx, cause)
	}
	return nil
}

// path is the zone that a cause is about, and the Pod in it: what is waited for, or else what waits. The
// zone is empty if all of the group waits.
func (g *groupAnswer) path(cause *record.Cause) (path [2]string) {
	path[0], path[1] = ring.UnitOf(cause.Units[0])
	if path[0] == "" { // of a stage as a whole
		path = [2]string{path[1]}
	}
	switch on := cause.On; {
	case on == nil:
	case on.Kind == decision.KindZone:
		path = [2]string{on.Name}
	default:
		path[1] = on.Name
		for i := range g.e.Zones { // a Pod has the name of its StatefulSet, and a number
			if strings.HasPrefix(on.Name, g.e.Zones[i].Name+"-") {
				path[0] = g.e.Zones[i].Name
			}
		}
	}
	if path[0] == g.ref.Name && path[1] == "" {
		path[0] = ""
	}
	return path
}

// unmade is a group that has members, and no object yet.
func (g *groupAnswer) unmade() {
	own := g.own()
	own.Phase, own.Reason = describe.PhaseUnseen, ReasonNotObserved
	own.Sentence = g.place() + fmt.Sprintf("RolloutGroup %s is waiting: not created by the manager yet", g.ref.Name)
	g.found.Then = g.aboutManager(g.ref.Namespace)
}

// fault is a mistake in a StatefulSet or in the group itself, as far as the caller may read these.
func (g *groupAnswer) fault(ctx context.Context) error {
	faults, err := zones.Problems(ctx, g.Client, g.ref.Namespace, g.ref.Name)
	if err != nil || len(faults) == 0 {
		g.own().Next = g.kubectl("edit", g.ref)
		return nil //nolint:nilerr // the sentence of the group says it, too
	}
	f := faults[0]
	kind, name, _ := strings.Cut(f.Object, " ")
	link := g.link(describe.Ref{Kind: kind, Namespace: g.ref.Namespace, Name: name}, decision.ReasonInvalid, "%s", f)
	link.Next = g.kubectl("edit", link.Ref)
	g.add(link)
	return nil
}

// paused goes to the zone if the pause is of one.
func (g *groupAnswer) paused(ctx context.Context, path [2]string) error {
	if p := g.e.Pause; p != nil {
		g.own().Owner, g.own().Next = p.By, g.spillway("resume", g.ref)
		return nil
	}
	zone := path[0]
	w, err := g.read(ctx, g.set(zone))
	if err != nil {
		return err
	}
	_, key, _ := vocabulary.RolloutPaused.Lookup(w.GetAnnotations())
	link := g.link(describe.Ref{Kind: describe.KindZone, Namespace: g.ref.Namespace, Name: zone}, rollout.ReasonPaused,
		"zone %s is paused: StatefulSet %s has annotation %s", zone, zone, key)
	link.Ring, link.Phase, link.Owner = manager.RingZones, rollout.PhasePaused, annotator(w.Object, key)
	link.Next = g.kubectl("annotate", g.set(zone), key+"-")
	g.add(link)
	return nil
}

// locked goes to who holds the lock, and to the manager if that is not at work: what
// holds the lock is not brought to an end then.
func (g *groupAnswer) locked(ctx context.Context) error {
	group := &v1alpha1.RolloutGroup{}
	if err := g.get(ctx, g.ref, group); err != nil {
		return err
	}
	l := group.Status.Lock
	if l == nil {
		return g.leftDownscale(ctx, group)
	}
	what := string(l.Purpose)
	if l.Zone != "" {
		what += " of " + l.Zone
	}
	link := g.link(describe.Ref{Kind: describe.KindLock, Namespace: g.ref.Namespace, Name: g.ref.Name}, rollout.ReasonLocked,
		"the lock of group %s is held by %s, for %s", g.ref.Name, l.Holder, what)
	link.Ring, link.Phase, link.Owner, link.Since = manager.RingZones, rollout.PhaseWaiting, l.Holder, describe.TimeOrNil(l.Since.Time)
	if l.Expires != nil {
		link.Until = describe.TimeOrNil(l.Expires.Time)
		link.Sentence += ", until " + rollout.Clock(l.Expires.Time) + " at the latest"
	}
	g.add(link)
	return g.whoseLock(ctx, l)
}

// whoseLock goes on from a lock: to the zone that is scaled down, if that is why it is
// held, or to the manager that does not run to release it.
func (g *groupAnswer) whoseLock(ctx context.Context, l *v1alpha1.Lock) error {
	if gone := g.managerGone(ctx, g.ref.Namespace); gone != nil {
		g.found = g.found.And(gone)
		return nil
	}
	lock := &g.found.Links[len(g.found.Links)-1]
	switch {
	case l.Expires == nil && l.Purpose != v1alpha1.PurposeRollout:
		lock.Next = g.kubectl("patch", g.ref, "--subresource=status", "--type=json", "-p", `[{"op":"remove","path":"/status/lock"}]`)
	case l.Zone != "":
		lock.Next = g.spillway("explain", g.set(l.Zone))
	}
	return nil
}

// leftDownscale is a downscale that was begun and not settled, whose lock has gone.
func (g *groupAnswer) leftDownscale(ctx context.Context, group *v1alpha1.RolloutGroup) error {
	d := group.Status.Downscale
	if d == nil {
		return nil
	}
	link := g.link(describe.Ref{Kind: describe.KindLock, Namespace: g.ref.Namespace, Name: g.ref.Name}, rollout.ReasonLocked,
		"downscale of %s from %d to %d replicas, begun at %s, is not complete", d.Zone, d.From, d.To, rollout.Clock(d.At.Time))
	link.Since, link.Owner, link.Next = describe.TimeOrNil(d.At.Time), d.Zone, g.spillway("explain", g.set(d.Zone))
	g.add(link)
	down, err := g.manages(ctx, describe.Ref{Kind: describe.KindManager, Name: "spillway"}, g.ref.Namespace)
	if err == nil && down.Links[0].Reason == ReasonManagerDown {
		g.found = g.found.And(&down)
	}
	return nil
}

// group is a group of StatefulSets: what its rollout waits for, and if that is
// complete, what its replicas wait for.
func (a *asker) group(ctx context.Context, ref describe.Ref, _ bool) (answer, error) {
	e, err := a.explainGroup(ctx, ref)
	if err != nil {
		return answer{}, err
	}
	scales, err := scaling.Look(ctx, a.Client, scaling.Options{Now: a.Options.Now}, ref.Namespace, ref.Name)
	if err != nil && !apierrors.IsForbidden(err) { // how it is rolled can be told without its replicas
		return answer{}, err
	}
	described, replicas := describe.Group(&e), scales.Explain()
	found := answer{Links: []Link{a.linkTo(&described)}, Facts: describe.GroupFacts(&e, replicas), Details: groupDetails{e, replicas}}
	g := groupAnswer{answering{a, ref, found}, &e}
	if !e.Missing && g.deleting(ctx) {
		return g.found, nil
	}
	if scaled := scales.At().Hold; e.Phase == string(rollout.PhaseComplete) && scaled != nil {
		return g.found, g.replicas(ctx, scaled)
	}
	err = g.rollout(ctx)
	return g.found, err
}

func (a *asker) explainGroup(ctx context.Context, ref describe.Ref) (decision.Explanation, error) {
	return zones.Explain(ctx, a.Client, zones.Options{Namespaces: a.Options.Namespaces}, ref.Namespace, ref.Name)
}

// deleting is true of a group that is being deleted, and that a finalizer keeps. Its
// StatefulSets roll all the same: the manager creates a new group for them.
func (g *groupAnswer) deleting(ctx context.Context) bool {
	group := &v1alpha1.RolloutGroup{}
	if g.get(ctx, g.ref, group) != nil || group.DeletionTimestamp == nil || len(group.Finalizers) == 0 {
		return false
	}
	own := g.own()
	own.Reason, own.Phase, own.Since = reasons.Deleting, rollout.PhaseWaiting, describe.TimeOrNil(group.DeletionTimestamp.Time)
	own.Sentence = g.place() + "group " + g.ref.Name + " is being deleted"
	g.found = g.kept(g.ref, group, "", g.found)
	return true
}

// firstUnseen is the first zone of which the status speaks of another spec, or that
// is being deleted.
func (g *groupAnswer) firstUnseen(ctx context.Context) *question {
	for i := range g.e.Zones {
		w, err := g.read(ctx, g.set(g.e.Zones[i].Name))
		if err == nil && (w.IsUnseen() || w.GetDeletionTimestamp() != nil) {
			return g.podsUnder(&w)
		}
	}
	return nil
}

// held goes to the zone, and from there to the Pod.
func (g *groupAnswer) held(ctx context.Context, cause *record.Cause) error {
	path, reason := g.path(cause), rollout.Reason(cause.Reason)
	if path[0] == "" {
		return nil
	}
	g.add(g.zone(path[0], reason))
	pod := g.podIn(ctx, path, reason)
	if pod == nil {
		return nil
	}
	switch {
	case pod.UID == "":
		return g.uncreatedIn(ctx, path[0], pod.Name)
	case severity(pod) != Well: // one that is ready has to stay so
		g.found.Then = g.about(describe.RefTo(describe.KindPod, pod))
	}
	return nil
}

// uncreatedIn is why a zone has no Pod of a name.
func (g *groupAnswer) uncreatedIn(ctx context.Context, zone, pod string) error {
	w, err := g.read(ctx, g.set(zone))
	if err != nil {
		return err
	}
	if w.IsUnseen() {
		g.found.Then = g.podsUnder(&w)
		return nil
	}
	message, err := g.failedCreate(ctx, &w)
	if err != nil || message == "" {
		last := &g.found.Links[len(g.found.Links)-1]
		last.Sentence += fmt.Sprintf("; Pod %s does not exist yet", pod)
		last.Next = g.kubectl("describe", g.set(zone))
		return err
	}
	link := g.link(g.set(zone), ReasonNotReady, "StatefulSet %s cannot create Pod %s", zone, pod)
	g.add(link)
	g.found = g.found.And(g.refusal(ctx, g.set(zone), message))
	return nil
}

// zone is a row of the group as a link.
func (g *groupAnswer) zone(name string, reason rollout.Reason) Link {
	ref := describe.Ref{Kind: describe.KindZone, Namespace: g.ref.Namespace, Name: name}
	i := slices.IndexFunc(g.e.Zones, func(z v1alpha1.Zone) bool { return z.Name == name })
	if i < 0 {
		return g.link(ref, "", "zone %s not found", name)
	}
	z := &g.e.Zones[i]
	link := g.link(ref, reason, "zone %s: %s", name, describe.ZoneCounts(z))
	link.Ring, link.Phase = manager.RingZones, rollout.PhaseWaiting
	if z.Since != nil {
		link.Since = describe.TimeOrNil(z.Since.Time)
	}
	return link
}

// podIn is the Pod at a path, or the one that does worst in its zone; one without a
// UID does not exist, and nil is none in particular.
func (g *groupAnswer) podIn(ctx context.Context, path [2]string, reason rollout.Reason) *corev1.Pod {
	if reason == rollout.ReasonSoak {
		return nil
	}
	if path[1] != "" {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = g.ref.Namespace, path[1]
		_ = g.get(ctx, describe.RefTo(describe.KindPod, pod), pod) // what cannot be read counts as missing
		pod.Namespace, pod.Name = g.ref.Namespace, path[1]
		return pod
	}
	w, err := g.read(ctx, g.set(path[0]))
	if err != nil {
		return nil
	}
	pods, err := g.pods(ctx, &w)
	if i := worst(pods); err == nil && i >= 0 {
		return &pods[i]
	}
	return nil
}

// replicas is what the replicas of a group wait for that has nothing to roll.
func (g *groupAnswer) replicas(ctx context.Context, hold *rollout.Hold) error {
	own := g.own()
	own.Reason, own.Sentence, own.Phase = hold.Reason, g.place()+hold.Message, rollout.PhaseWaiting
	own.Since, own.Until = describe.TimeOrNil(hold.Since), describe.TimeOrNil(hold.Until)
	if len(hold.Path) == 0 {
		return nil
	}
	set := g.set(hold.Path[len(hold.Path)-1])
	switch hold.Reason {
	case rollout.ReasonLocked:
		return g.locked(ctx)
	case scaling.ReasonLeaderNotReady:
		w, err := g.read(ctx, set)
		if err != nil {
			return err
		}
		leader := g.set(vocabulary.DownscaleLeader.Get(w.GetAnnotations()))
		lead, err := g.read(ctx, leader)
		if err == nil {
			g.found.Then = g.podsUnder(&lead)
		}
		return err
	case rollout.ReasonRetry:
		g.refused(ctx, set.Name, hold.Message)
	case scaling.ReasonContested:
		w, err := g.read(ctx, set)
		if err != nil {
			return err
		}
		link := g.link(set, hold.Reason, "%s", hold.Message)
		link.Owner = annotator(w.Object, "replicas")
		g.add(link)
	case scaling.ReasonInvalid, scaling.ReasonLeader, scaling.ReasonMirror:
		link := g.link(set, hold.Reason, "%s", hold.Message)
		link.Next = g.kubectl("edit", set)
		g.add(link)
	}
	return nil
}

// refused is a write that the API server did not take.
func (g *groupAnswer) refused(ctx context.Context, zone, message string) {
	g.found = g.found.And(g.refusal(ctx, g.set(zone), message))
}

// set is a StatefulSet of the group.
func (g *groupAnswer) set(name string) describe.Ref {
	return describe.Ref{Kind: workloads.StatefulSet, Namespace: g.ref.Namespace, Name: name}
}
