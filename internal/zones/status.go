package zones

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// reporter tells what happened: Events, metrics, log.
type reporter struct {
	events events.EventRecorder
	now    func() time.Time
}

// report tells of one pass.
func (r *reporter) report(ctx context.Context, s *sight, p *pass, d *deeds, m *memory) {
	if d.groupErr != nil {
		r.refused(ctx, "Group", s.key.Name, d.groupErr)
	}
	for i := range d.outcomes {
		out := &d.outcomes[i]
		if out.err != nil {
			r.refused(ctx, string(out.write.Act), out.write.target(), out.err)
			continue
		}
		writes.WithLabelValues(string(out.write.Act), "made").Inc()
		log.FromContext(ctx).Info("acts", "act", string(out.write.Act), "zone", out.write.Zone, "pod", out.write.Pod)
	}
	if d.group != nil {
		writes.WithLabelValues("Group", "made").Inc()
		log.FromContext(ctx).V(1).Info("writes the status", "permits", p.Permits, "moves", len(p.Status.Moves), "phase", p.Status.Phase)
		r.tell(s.object, d.group)
	}
	r.measure(s, p, m)
	r.logWait(ctx, p, m)
	r.warn(s, p, m)
}

// refused logs a failed write, but not one that somebody else was faster than:
// that is looked at anew, in silence.
func (r *reporter) refused(ctx context.Context, act, name string, err error) {
	if isOvertaken(err) {
		writes.WithLabelValues(act, "overtaken").Inc()
		log.FromContext(ctx).V(1).Info("overtaken, looking again", "act", act, "object", name, "error", err.Error())
		return
	}
	writes.WithLabelValues(act, "failed").Inc()
	log.FromContext(ctx).Error(err, "write failed, trying again later", "act", act, "object", name)
}

// tell sends an Event for each thing that the group's status did not say before
// it was written and says now; so each is told once, whoever leads.
func (r *reporter) tell(before, after *v1alpha1.RolloutGroup) {
	if before == nil {
		return
	}
	for i := range after.Status.Zones {
		r.tellZone(after, rowOf(before, after.Status.Zones[i].Name), &after.Status.Zones[i])
	}
	was, is := &before.Status, &after.Status
	switch {
	case !isStalled(was) && isStalled(is):
		r.event(after, corev1.EventTypeWarning, reasons.RolloutStuck, "%s", is.WaitingFor)
	case isStalled(was) && !isStalled(is), wasPaused(was) && !wasPaused(is):
		r.event(after, corev1.EventTypeNormal, reasons.RolloutResumed, "the rollout goes on: %s of Pods are up to date", is.Updated)
	case !wasPaused(was) && wasPaused(is):
		r.event(after, corev1.EventTypeNormal, reasons.RolloutPaused, "%s", is.WaitingFor)
	}
}

func (r *reporter) tellZone(group *v1alpha1.RolloutGroup, was v1alpha1.Zone, is *v1alpha1.Zone) {
	if is.StartedAt == nil {
		return
	}
	started := was.StartedAt == nil || !was.StartedAt.Equal(is.StartedAt)
	if started {
		r.event(group, corev1.EventTypeNormal, EventZoneStarted, "zone %s goes to revision %s", is.Name, is.Target)
	}
	if is.State == StateComplete && (started || was.State != StateComplete) {
		r.event(group, corev1.EventTypeNormal, EventZoneDone, "zone %s is done: %d of %d Pods are up to date", is.Name, is.Updated, is.Total)
	}
}

func (r *reporter) event(group *v1alpha1.RolloutGroup, kind string, reason rollout.Reason, note string, args ...any) {
	r.events.Eventf(group, nil, kind, string(reason), "Roll", note, args...)
}

func rowOf(group *v1alpha1.RolloutGroup, name string) v1alpha1.Zone {
	i := slices.IndexFunc(group.Status.Zones, func(z v1alpha1.Zone) bool { return z.Name == name })
	if i < 0 {
		return v1alpha1.Zone{}
	}
	return group.Status.Zones[i]
}

func isStalled(s *v1alpha1.RolloutGroupStatus) bool {
	return apimeta.IsStatusConditionTrue(s.Conditions, ConditionStalled)
}

func wasPaused(s *v1alpha1.RolloutGroupStatus) bool { return s.Phase == string(rollout.PhasePaused) }

// warn tells the members of a group that cannot have an object, and therefore no
// status, why nothing rolls; once for as long as the manager runs.
func (r *reporter) warn(s *sight, p *pass, m *memory) {
	if p.nameless == "" || m.told == p.nameless {
		return
	}
	m.told = p.nameless
	for i := range s.sets {
		r.events.Eventf(&s.sets[i], nil, corev1.EventTypeWarning, string(EventNameless), "Roll", "%s", p.nameless)
	}
}

// logWait logs what a group waits for when that begins or its sentence changes.
func (r *reporter) logWait(ctx context.Context, p *pass, m *memory) {
	hold := p.At().Hold
	switch {
	case hold == nil:
		m.waits = ""
	case hold.Message != m.waits:
		m.waits = hold.Message
		log.FromContext(ctx).V(1).Info("waits", "unit", hold.Path.String(), "reason", string(hold.Reason), "why", hold.Message)
	}
}

// series is one time series of a gauge of a group, by the labels that follow those
// of the group.
type series struct {
	gauge  *prometheus.GaugeVec
	labels [2]string
}

func (s series) of(key types.NamespacedName) []string {
	labels := []string{key.Namespace, key.Name, s.labels[0]}
	if s.labels[1] != "" {
		labels = append(labels, s.labels[1])
	}
	return labels
}

// measure brings the gauges of a group up to date. To look for those that are not
// there any more among the gauges of all groups would cost each pass more the more
// groups there are.
func (r *reporter) measure(s *sight, p *pass, m *memory) {
	now := gauges(s, p)
	for one := range m.gauges {
		if _, lasts := now[one]; !lasts {
			one.gauge.DeleteLabelValues(one.of(s.key)...)
		}
	}
	for one, value := range now {
		if before, known := m.gauges[one]; !known || before != value {
			one.gauge.WithLabelValues(one.of(s.key)...).Set(value)
		}
	}
	m.gauges = now
}

// gauges are what a group shows.
func gauges(s *sight, p *pass) map[series]float64 {
	shown := map[series]float64{}
	if s.object == nil || p.remove {
		return shown
	}
	shown[series{groups, [2]string{p.Status.Phase}}] = 1
	for _, h := range p.Holds {
		shown[series{waiting, [2]string{string(h.Reason)}}]++
	}
	for i := range p.Status.Zones {
		z := &p.Status.Zones[i]
		shown[series{pods, [2]string{z.Name, "updated"}}] = float64(z.Updated)
		shown[series{pods, [2]string{z.Name, "ready"}}] = float64(z.Ready)
		shown[series{pods, [2]string{z.Name, "total"}}] = float64(z.Total)
	}
	return shown
}

// clock measures one reconcile of a group by the predecessor's metrics.
func (r *reporter) clock(group string, began time.Time, failed bool) {
	now := r.now()
	reconciles.WithLabelValues(group).Inc()
	reconcileDuration.WithLabelValues(group).Observe(now.Sub(began).Seconds())
	failures := reconcilesFailed.WithLabelValues(group) // so that it is there, at 0
	if failed {
		failures.Inc()
		return
	}
	reconcileLast.WithLabelValues(group).Set(float64(now.UnixMilli()) / 1000)
}

// forget removes the metrics of a group that is gone.
func (r *reporter) forget(group string) {
	reconciles.DeleteLabelValues(group)
	reconcilesFailed.DeleteLabelValues(group)
	reconcileDuration.DeleteLabelValues(group)
	reconcileLast.DeleteLabelValues(group)
}
