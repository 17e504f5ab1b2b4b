package describe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones"
	"github.com/spillway-dev/spillway/internal/zones/scaling"
	"github.com/spillway-dev/spillway/rollout"
)

// GroupDetails is how a group is rolled, and what its replicas wait for.
type GroupDetails struct {
	zones.Explanation

	Replicas []string `json:"replicas,omitempty"`
}

func (a *asker) explainGroup(ctx context.Context, ref Ref) (zones.Explanation, error) {
	o := zones.Options{Namespaces: a.Options.Namespaces, Now: a.Options.Now}
	return zones.Explain(ctx, a.Client, o, ref.Namespace, ref.Name)
}

// isComplete is true of a group whose zones are all where they should be.
func (a *asker) isComplete(ctx context.Context, ref Ref) (bool, error) {
	e, err := a.explainGroup(ctx, ref)
	return e.Phase == string(rollout.PhaseComplete), err
}

// group is a group of StatefulSets: what its rollout waits for, and if that is
// complete, what its replicas wait for.
func (a *asker) group(ctx context.Context, ref Ref, _ bool) (answer, error) {
	e, err := a.explainGroup(ctx, ref)
	if err != nil {
		return answer{}, err
	}
	scales, err := scaling.Look(ctx, a.Client, scaling.Options{Now: a.Options.Now}, ref.Namespace, ref.Name)
	if err != nil && !apierrors.IsForbidden(err) { // how it is rolled can be told without its replicas
		return answer{}, err
	}
	link := a.link(ref, e.Reason, "%s", strings.TrimSuffix(e.Sentence, "."))
	link.Ring, link.Phase = manager.RingZones, rollout.Phase(e.Phase)
	link.Since, link.Until, link.Deadline = e.Since, e.Until, e.Deadline
	g := groupAnswer{asker: a, ref: ref, e: &e, found: answer{links: []Link{link}, details: GroupDetails{e, scales.Explain()}}}
	if !e.Missing && g.deleting(ctx) {
		return g.found, nil
	}
	if scaled := scales.At().Hold; e.Phase == string(rollout.PhaseComplete) && scaled != nil {
		return g.found, g.replicas(ctx, scaled)
	}
	err = g.rollout(ctx)
	return g.found, err
}

// deleting is true of a group that is being deleted, and that somebody keeps. Nobody
// rolls anything less for it: its StatefulSets make a new one.
func (g *groupAnswer) deleting(ctx context.Context) bool {
	group := &v1alpha1.RolloutGroup{}
	if g.get(ctx, g.ref, group) != nil || group.DeletionTimestamp == nil || len(group.Finalizers) == 0 {
		return false
	}
	own := g.own()
	own.Reason, own.Phase, own.Since = reasons.Deleting, rollout.PhaseWaiting, momentOrNil(group.DeletionTimestamp.Time)
	own.Sentence = g.place() + "group " + g.ref.Name + " is being deleted"
	g.found = g.kept(g.ref, group, "", g.found)
	return true
}

// groupAnswer is the answer about a group, as it comes together.
type groupAnswer struct {
	*asker

	ref   Ref
	e     *zones.Explanation
	found answer
}

func (g *groupAnswer) own() *Link { return &g.found.links[0] }

func (g *groupAnswer) add(link Link) { g.found.links = append(g.found.links, link) }

// set is a StatefulSet of the group.
func (g *groupAnswer) set(name string) Ref {
	return Ref{Kind: workloads.StatefulSet, Namespace: g.ref.Namespace, Name: name}
}

// rollout goes on from the reason that tells most.
func (g *groupAnswer) rollout(ctx context.Context) error {
	hold := g.e.Telling
	switch {
	case len(g.e.Faults) > 0:
		g.fault()
	case g.e.Missing:
		g.unmade()
	case g.e.Phase == string(rollout.PhaseComplete) || g.e.Phase == "":
	case hold == nil:
		g.found.on = g.manager(g.ref.Namespace)
	case hold.Reason == rollout.ReasonPaused:
		return g.paused(ctx, hold)
	case hold.Reason == rollout.ReasonLocked:
		return g.locked(ctx)
	case hold.Reason == zones.ReasonWindow:
	case hold.Reason == zones.ReasonNotObserved || hold.Reason == zones.ReasonDeleting:
		g.found.on = g.firstUnseen(ctx)
	case hold.Reason == rollout.ReasonRetry:
		g.refused(ctx, hold)
	default:
		return g.held(ctx, hold)
	}
	return nil
}

// unmade is a group that has members, and no object yet.
func (g *groupAnswer) unmade() {
	own := g.own()
	own.Phase, own.Reason = PhaseUnseen, ReasonNotObserved
	own.Sentence = g.place() + fmt.Sprintf("group %s has StatefulSets, and the manager has not made its RolloutGroup yet", g.ref.Name)
	g.found.on = g.manager(g.ref.Namespace)
}

// fault is a mistake in a StatefulSet or in the group itself.
func (g *groupAnswer) fault() {
	f := g.e.Faults[0]
	kind, name, _ := strings.Cut(f.Object, " ")
	link := g.link(Ref{Kind: kind, Namespace: g.ref.Namespace, Name: name}, zones.ReasonInvalid, "%s", f)
	link.Next = g.kubectl("edit", link.Ref)
	g.add(link)
}

// paused goes to the zone if the pause is of one.
func (g *groupAnswer) paused(ctx context.Context, hold *rollout.Hold) error {
	if p := g.e.Pause; p != nil {
		g.own().Owner, g.own().Next = p.By, g.spillway("resume", g.ref)
		return nil
	}
	zone := zoneOf(hold)
	w, err := g.read(ctx, g.set(zone))
	if err != nil {
		return err
	}
	_, key, _ := vocabulary.RolloutPaused.Lookup(w.GetAnnotations())
	link := g.link(Ref{Kind: kindZone, Namespace: g.ref.Namespace, Name: zone}, rollout.ReasonPaused,
		"zone %s is paused: StatefulSet %s has annotation %s", zone, zone, key)
	link.Ring, link.Phase, link.Owner = manager.RingZones, rollout.PhasePaused, annotator(w.Object, key)
	link.Next = g.kubectl("annotate", g.set(zone), key+"-")
	g.add(link)
	return nil
}

// zoneOf is the zone that a hold is about, or in which it is.
func zoneOf(hold *rollout.Hold) string {
	for _, path := range []rollout.Path{hold.On, hold.Path} {
		if len(path) > 0 {
			return path[0]
		}
	}
	return ""
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
	link := g.link(Ref{Kind: kindLock, Namespace: g.ref.Namespace, Name: g.ref.Name}, ReasonHeld,
		"the lock of group %s is held by %s, for %s", g.ref.Name, l.Holder, what)
	link.Ring, link.Phase, link.Owner, link.Since = manager.RingZones, rollout.PhaseWaiting, l.Holder, momentOrNil(l.Since.Time)
	if l.Expires != nil {
		link.Until = momentOrNil(l.Expires.Time)
		link.Sentence += ", until " + rollout.Clock(l.Expires.Time) + " at the latest"
	}
	g.add(link)
	return g.whoseLock(ctx, l)
}

// whoseLock goes on from a lock: to the zone that is scaled down, if that is why it is
// held, or to the manager that is not there to give it back.
func (g *groupAnswer) whoseLock(ctx context.Context, l *v1alpha1.Lock) error {
	if gone := g.managerGone(ctx, g.ref.Namespace); gone != nil {
		g.found = g.found.and(gone)
		return nil
	}
	lock := &g.found.links[len(g.found.links)-1]
	switch {
	case l.Expires == nil && l.Purpose != v1alpha1.PurposeRollout:
		lock.Next = g.kubectl("patch", g.ref, "--subresource=status", "--type=json", "-p", `'[{"op":"remove","path":"/status/lock"}]'`)
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
	link := g.link(Ref{Kind: kindLock, Namespace: g.ref.Namespace, Name: g.ref.Name}, ReasonHeld,
		"a downscale of %s from %d to %d replicas was begun at %s, and is not settled", d.Zone, d.From, d.To, rollout.Clock(d.At.Time))
	link.Since, link.Owner, link.Next = momentOrNil(d.At.Time), d.Zone, g.spillway("explain", g.set(d.Zone))
	g.add(link)
	down, err := g.manages(ctx, Ref{Kind: kindManager, Name: "spillway"}, g.ref.Namespace)
	if err == nil && down.links[0].Reason == ReasonManagerDown {
		g.found = g.found.and(&down)
	}
	return nil
}

// firstUnseen is the first zone of which the status speaks of another spec, or that
// is being deleted.
func (g *groupAnswer) firstUnseen(ctx context.Context) *question {
	for i := range g.e.Zones {
		w, err := g.read(ctx, g.set(g.e.Zones[i].Name))
		if err == nil && (w.isUnseen() || w.GetDeletionTimestamp() != nil) {
			return g.podsUnder(&w)
		}
	}
	return nil
}

// refused is a write that the API server did not take.
func (g *groupAnswer) refused(ctx context.Context, hold *rollout.Hold) {
	g.found = g.found.and(g.refusal(ctx, g.set(zoneOf(hold)), hold.Message))
}

// held goes to the zone, and from there to the Pod.
func (g *groupAnswer) held(ctx context.Context, hold *rollout.Hold) error {
	path := hold.Path
	if len(hold.On) > 0 {
		path = hold.On
	}
	if len(path) == 0 {
		return nil
	}
	g.add(g.zone(path[0], hold.Reason))
	pod := g.podIn(ctx, path, hold)
	if pod == nil {
		return nil
	}
	switch {
	case pod.UID == "":
		return g.uncreatedIn(ctx, path[0], pod.Name)
	case severity(pod) != well: // one that is ready has to stay so
		g.found.on = g.about(refTo(kindPod, pod))
	}
	return nil
}

// uncreatedIn is why a zone has no Pod of a name.
func (g *groupAnswer) uncreatedIn(ctx context.Context, zone, pod string) error {
	w, err := g.read(ctx, g.set(zone))
	if err != nil {
		return err
	}
	if w.isUnseen() {
		g.found.on = g.podsUnder(&w)
		return nil
	}
	message, err := g.failedCreate(ctx, &w)
	if err != nil || message == "" {
		last := &g.found.links[len(g.found.links)-1]
		last.Sentence += fmt.Sprintf("; Pod %s is not there yet", pod)
		last.Next = g.kubectl("describe", g.set(zone))
		return err
	}
	link := g.link(g.set(zone), ReasonNotReady, "StatefulSet %s cannot create Pod %s", zone, pod)
	g.add(link)
	g.found = g.found.and(g.refusal(ctx, g.set(zone), message))
	return nil
}

// zone is a row of the group as a link.
func (g *groupAnswer) zone(name string, reason rollout.Reason) Link {
	ref := Ref{Kind: kindZone, Namespace: g.ref.Namespace, Name: name}
	i := slices.IndexFunc(g.e.Zones, func(z v1alpha1.Zone) bool { return z.Name == name })
	if i < 0 {
		return g.link(ref, "", "zone %s is not there", name)
	}
	z := &g.e.Zones[i]
	link := g.link(ref, reason, "zone %s has %d of %d Pods updated, and %d ready", name, z.Updated, z.Total, z.Ready)
	link.Ring, link.Phase = manager.RingZones, rollout.PhaseWaiting
	if z.Since != nil {
		link.Since = momentOrNil(z.Since.Time)
	}
	return link
}

// podIn is the Pod at a path, or the one that does worst in its zone; one without a
// UID is not there, and nil is none in particular.
func (g *groupAnswer) podIn(ctx context.Context, path rollout.Path, hold *rollout.Hold) *corev1.Pod {
	if hold.Reason == rollout.ReasonSoak {
		return nil
	}
	if len(path) > 1 {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = g.ref.Namespace, path[1]
		_ = g.get(ctx, refTo(kindPod, pod), pod) // what cannot be read is as if it were not there
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
	own.Since, own.Until = momentOrNil(hold.Since), momentOrNil(hold.Until)
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
			g.found.on = g.podsUnder(&lead)
		}
		return err
	case rollout.ReasonRetry:
		g.refused(ctx, &rollout.Hold{Path: rollout.Path{set.Name}, Message: hold.Message})
	case scaling.ReasonInvalid, scaling.ReasonLeader, scaling.ReasonMirror:
		link := g.link(set, hold.Reason, "%s", hold.Message)
		link.Next = g.kubectl("edit", set)
		g.add(link)
	}
	return nil
}
