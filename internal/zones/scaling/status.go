package scaling

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// reporter reports what happened: Events, metrics, log.
type reporter struct{ ring.Reporter }

// report reports one pass. Events are emitted only for writes that were made, and once
// for each mistake of a user.
func (r *reporter) report(ctx context.Context, s *snapshot, p *Plan, done *results, m *memory) {
	for i := range done.Writes {
		w := &done.Writes[i]
		r.of(s).Wrote(ctx, w.Change, w.Err)
		switch {
		case w.Write == nil:
		case w.Err == nil:
			r.scaled(s, w.Write)
		case w.Write.To < w.Write.From && isRefusal(w.Err) && m.IsNew(w.Write.Set.Name+" refused", w.Err.Error()):
			r.Warning(s.object(w.Write.Set.Name), EventRefused, "downscale from %d to %d replicas refused: %s", w.Write.From, w.Write.To, w.Err)
		}
	}
	m.Show(gauges(s, p))
	m.Wait(metrics.RingZones, s.Now, p.Holds)
	for i := range s.Sets {
		r.warn(s, &s.Sets[i], m)
	}
	for i := range p.Holds {
		h := &p.Holds[i]
		if set := h.Path[len(h.Path)-1]; h.Reason == ReasonContested && m.IsNew(set+" contested", h.Message) {
			r.Warning(s.object(set), ReasonContested, "%s", h.Message)
		}
		if m.IsNew(h.Path.String()+" waits", h.Message) {
			log.FromContext(ctx).V(1).Info("waiting", "statefulset", h.Path[len(h.Path)-1], "reason", string(h.Reason), "cause", h.Message)
		}
	}
}

// of is the reporter of one group.
func (r *reporter) of(s *snapshot) *ring.Reporter {
	of := r.Reporter
	of.Writes = metrics.ZonesScalesOf(s.key.Namespace, s.key.Name)
	return &of
}

// scaled emits an Event for replicas that were written.
func (r *reporter) scaled(s *snapshot, scale *Scale) {
	reason := EventScaledUp
	if scale.To < scale.From {
		reason = EventScaledDown
	}
	r.Normal(s.object(scale.Set.Name), reason, "%d replicas, before %d", scale.To, scale.From)
}

// gauges are what a group shows.
func gauges(s *snapshot, p *Plan) map[ring.Series]float64 {
	shown := map[ring.Series]float64{}
	for i := range p.Holds {
		shown[ring.SeriesOf(metrics.ZonesScalingWaiting, s.key.Namespace, s.key.Name, string(p.Holds[i].Reason))]++
	}
	return shown
}

// warn reports to the StatefulSet itself what its annotations make impossible.
func (r *reporter) warn(s *snapshot, set *Set, m *memory) {
	if text := problems(set); m.IsNew(set.Name, text) {
		r.Warning(s.object(set.Name), ReasonInvalid, "%s", text)
	}
	label := ""
	if set.Settings.MinTimeIsLabel {
		label = "the minimum time is set by a label; set it by an annotation, which can be changed without regard to selectors: " +
			vocabulary.MinTimeBetweenZonesDownscale.Native
	}
	if m.IsNew(set.Name+" label", label) {
		r.Warning(s.object(set.Name), EventLabel, "%s", label)
	}
}
