package zones

import (
	"context"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/decision"
	"github.com/spillway-dev/spillway/rollout"
)

// reporter reports what happened: Events, metrics, log.
type reporter struct {
	ring.Reporter
}

func newReporter(recorder events.EventRecorder) reporter {
	return reporter{ring.Reporter{Events: recorder, Action: "Roll", Writes: metrics.ZonesWrites}}
}

// report reports one pass.
func (r *reporter) report(ctx context.Context, s *snapshot, p *pass, done *results, m *memory) {
	for i := range done.Writes {
		r.Wrote(ctx, done.Writes[i].Change, done.Writes[i].Err)
	}
	if done.Written() || done.Err != nil {
		r.Wrote(ctx, ring.Change{Act: "Group", Object: s.key.Name}, done.Err, "permits", p.Permits, "moves", len(p.Status.Moves), "phase", p.Status.Phase)
	}
	if done.Written() {
		r.emit(s.object, done.Object)
	}
	m.Show(gauges(s, p))
	m.Wait(metrics.RingZones, s.Now, holdsOf(s, p))
	logWait(ctx, p, m)
	r.warn(s, p, m)
	r.warnIgnored(s, m)
}

// emit sends an Event for each thing that the group's status did not say before it
// was written and says now; so each is reported once, whichever manager leads.
func (r *reporter) emit(before, after *v1alpha1.RolloutGroup) {
	if before == nil {
		return
	}
	for i := range after.Status.Zones {
		r.emitZone(after, rowOf(before, after.Status.Zones[i].Name), &after.Status.Zones[i])
	}
	metrics.Ended(metrics.RingZones, past(before.Status.History), past(after.Status.History))
	r.Turned(after, courseOf(&before.Status), courseOf(&after.Status))
}

func courseOf(s *v1alpha1.RolloutGroupStatus) ring.Course {
	return ring.Course{
		Stalled: apimeta.IsStatusConditionTrue(s.Conditions, ring.ConditionStalled), Paused: s.Phase == string(rollout.PhasePaused),
		Message: s.WaitingFor, Progress: s.Updated + " Pods updated",
	}
}

func (r *reporter) emitZone(group *v1alpha1.RolloutGroup, was v1alpha1.Zone, is *v1alpha1.Zone) {
	if is.StartedAt == nil {
		return
	}
	started := was.StartedAt == nil || !was.StartedAt.Equal(is.StartedAt)
	if started {
		r.Normal(group, EventZoneStarted, "zone %s is updating to revision %s", is.Name, is.Target)
	}
	if is.State == decision.StateComplete && (started || was.State != decision.StateComplete) {
		r.Normal(group, EventZoneDone, "zone %s is complete: %d of %d Pods are up to date", is.Name, is.Updated, is.Total)
	}
}

func rowOf(group *v1alpha1.RolloutGroup, name string) v1alpha1.Zone {
	i := slices.IndexFunc(group.Status.Zones, func(z v1alpha1.Zone) bool { return z.Name == name })
	if i < 0 {
		return v1alpha1.Zone{}
	}
	return group.Status.Zones[i]
}

// warnIgnored reports settings of a StatefulSet that have no effect, once for as long as the
// manager runs; all in one Event, because of several with one reason only the first is shown.
func (r *reporter) warnIgnored(s *snapshot, m *memory) {
	for i := range s.sets {
		set := &s.sets[i]
		text := message.Join(vocabulary.IgnoredOn("StatefulSet", set.Labels, set.Annotations), "; ", func(of vocabulary.WithoutEffect) string {
			return of.Name + " has no effect: " + of.Instead
		})
		if m.IsNew("ignored/"+set.Name, text) {
			r.Warning(set, EventIgnored, "%s", text)
		}
	}
}

// warn reports to the members of a group that cannot have an object, and therefore no
// status, why nothing rolls; once for as long as the manager runs.
func (r *reporter) warn(s *snapshot, p *pass, m *memory) {
	if !m.IsNew("name", p.nameless) {
		return
	}
	for i := range s.sets {
		r.Warning(&s.sets[i], EventNameless, "%s", p.nameless)
	}
}

// logWait logs what a group waits for when that begins or its sentence changes.
func logWait(ctx context.Context, p *pass, m *memory) {
	hold := p.At().Hold
	if hold == nil {
		m.IsNew("wait", "")
	} else if m.IsNew("wait", hold.Message) {
		log.FromContext(ctx).V(1).Info("waiting", "unit", hold.Path.String(), "reason", string(hold.Reason), "cause", hold.Message)
	}
}

// isGone is true of a group that is not rolled out any more.
func isGone(s *snapshot, p *pass) bool { return s.object == nil || p.remove }

func holdsOf(s *snapshot, p *pass) []rollout.Hold {
	if isGone(s, p) {
		return nil
	}
	return p.Holds
}

func past(history []v1alpha1.Rollout) []metrics.Past {
	rollouts := make([]metrics.Past, len(history))
	for i := range history {
		r := &history[i]
		rollouts[i] = metrics.Past{ID: strconv.FormatInt(r.Number, 10), Outcome: r.Outcome}
		if r.FinishedAt != nil {
			rollouts[i].Took = r.FinishedAt.Sub(r.StartedAt.Time)
		}
	}
	return rollouts
}

// gauges are what a group shows.
func gauges(s *snapshot, p *pass) map[ring.Series]float64 {
	shown := map[ring.Series]float64{}
	if isGone(s, p) {
		return shown
	}
	shown[s.series(metrics.ZonesPhase, p.Status.Phase)] = 1
	for _, h := range p.Holds {
		shown[s.series(metrics.ZonesWaiting, string(h.Reason))]++
	}
	if l := p.Status.Lock; l != nil {
		shown[s.series(metrics.ZonesLock, string(l.Purpose))] = float64(l.Since.UnixMilli()) / 1000
	}
	for i := range p.Status.Zones {
		z := &p.Status.Zones[i]
		shown[s.series(metrics.ZonesPods, z.Name, "updated")] = float64(z.Updated)
		shown[s.series(metrics.ZonesPods, z.Name, "ready")] = float64(z.Ready)
		shown[s.series(metrics.ZonesPods, z.Name, "total")] = float64(z.Total)
	}
	return shown
}

// series is that of a gauge of the group.
func (s *snapshot) series(gauge *prometheus.GaugeVec, labels ...string) ring.Series {
	return ring.SeriesOf(gauge, append([]string{s.key.Namespace, s.key.Name}, labels...)...)
}
