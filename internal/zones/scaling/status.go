package scaling

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// reporter tells what happened: Events, metrics, log.
type reporter struct{ events events.EventRecorder }

// report tells of one pass. Events are sent only for writes that were made, and once
// for each mistake of a user.
func (r *reporter) report(ctx context.Context, s *sight, p *Plan, outcomes []outcome, m *memory) {
	for i := range outcomes {
		r.tell(ctx, s, &outcomes[i])
	}
	r.measure(s, p)
	for i := range s.Sets {
		r.warn(s, &s.Sets[i], m)
	}
	for _, h := range p.Holds {
		if m.isNews(h.Path.String()+" waits", h.Message) {
			log.FromContext(ctx).V(1).Info("waits", "statefulset", h.Path[len(h.Path)-1], "reason", string(h.Reason), "why", h.Message)
		}
	}
}

func (r *reporter) tell(ctx context.Context, s *sight, o *outcome) {
	result := "made"
	switch {
	case o.err != nil && isOvertaken(o.err):
		result = "overtaken"
		log.FromContext(ctx).V(1).Info("overtaken, looking again", "object", o.name, "error", o.err.Error())
	case o.err != nil:
		result = "failed"
		log.FromContext(ctx).Error(o.err, "failed, trying again later", "object", o.name)
	}
	if o.scale == nil {
		return
	}
	scales.WithLabelValues(s.key.Namespace, s.key.Name, result).Inc()
	if o.err == nil {
		reason := EventScaledUp
		if o.scale.To < o.scale.From {
			reason = EventScaledDown
		}
		r.events.Eventf(s.object(o.name), nil, corev1.EventTypeNormal, string(reason), "Scale", "%d replicas, before %d", o.scale.To, o.scale.From)
		log.FromContext(ctx).Info("scales", "statefulset", o.name, "from", o.scale.From, "to", o.scale.To)
	}
}

// measure brings the gauges of a group up to date.
func (*reporter) measure(s *sight, p *Plan) {
	waiting.DeletePartialMatch(prometheus.Labels{"namespace": s.key.Namespace, "rollout_group": s.key.Name})
	for _, h := range p.Holds {
		waiting.WithLabelValues(s.key.Namespace, s.key.Name, string(h.Reason)).Inc()
	}
}

// warn tells the StatefulSet itself what its annotations make impossible.
func (r *reporter) warn(s *sight, set *Set, m *memory) {
	if text := problems(set); m.isNews(set.Name, text) {
		r.events.Eventf(s.object(set.Name), nil, corev1.EventTypeWarning, string(ReasonInvalid), "Scale", "%s", text)
	}
	label := ""
	if set.Settings.MinTimeIsLabel {
		label = "the label of the minimum time is better an annotation, which can be edited without concern for selectors: " +
			vocabulary.MinTimeBetweenZonesDownscale.Native
	}
	if m.isNews(set.Name+" label", label) {
		r.events.Eventf(s.object(set.Name), nil, corev1.EventTypeWarning, string(EventLabel), "Scale", "%s", label)
	}
}
