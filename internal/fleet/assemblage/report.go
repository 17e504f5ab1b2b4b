package assemblage

import (
	"context"
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
)

// The reasons of Events.
const (
	EventSucceeded = "SyncSucceeded"
	EventFailed    = "SyncFailed"
	EventWaits     = "SyncWaits"
)

var syncs = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "spillway_fleet_syncs", Help: "Syncs of assemblages, by the kind of the assemblage and the state of the sync.",
}, []string{"kind", "state"})

func init() { metrics.Registry.MustRegister(syncs) } //nolint:gochecknoinits // controller-runtime serves its registry

// reporter tells what happened: Events, metrics, log.
type reporter struct {
	events events.EventRecorder
	kind   string

	mu sync.Mutex
	// states are those of the syncs of each assemblage when it was last looked at.
	states map[types.NamespacedName][]v1alpha1.State
}

func newReporter(recorder events.EventRecorder, kind string) *reporter {
	return &reporter{events: recorder, kind: kind, states: map[types.NamespacedName][]v1alpha1.State{}}
}

// report tells of one pass. Events are sent only for what was written.
func (r *reporter) report(ctx context.Context, o *Observed, p *Plan, d *deeds) {
	if d.told {
		r.tellTransitions(&o.Assemblage, &p.Status)
	}
	if d.err != nil && !errors.Is(d.err, errOvertaken) {
		log.FromContext(ctx).V(1).Info("trying again later", "error", d.err.Error())
	}
	r.measure(o.Assemblage.NamespacedName, &p.Status)
}

// told is which state is worth an Event.
var told = map[v1alpha1.State]string{
	v1alpha1.StateSucceeded: EventSucceeded, v1alpha1.StateFailed: EventFailed,
	v1alpha1.StateWaiting: EventWaits, v1alpha1.StateUnreachable: EventWaits,
}

func (r *reporter) tellTransitions(a *Assemblage, now *v1alpha1.AssemblageStatus) {
	was := map[string]*v1alpha1.SyncStatus{}
	for i := range a.Status.Syncs {
		was[a.Status.Syncs[i].Name] = &a.Status.Syncs[i]
	}
	object := &corev1.ObjectReference{APIVersion: a.GroupVersion().String(), Kind: a.Kind, Namespace: a.Namespace, Name: a.Name, UID: a.UID}
	for i := range now.Syncs {
		s := &now.Syncs[i]
		before := was[s.Name]
		if reason := told[s.State]; reason != "" && (before == nil || before.State != s.State || before.Revision != s.Revision) {
			r.events.Eventf(object, nil, eventType(s.State), reason, "Sync", "sync %s: %s", s.Name, s.Message)
		}
	}
}

func eventType(s v1alpha1.State) string {
	if s == v1alpha1.StateSucceeded {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

func (r *reporter) measure(key types.NamespacedName, s *v1alpha1.AssemblageStatus) {
	var states []v1alpha1.State
	for i := range s.Syncs {
		states = append(states, s.Syncs[i].State)
	}
	r.count(key, states)
}

// count brings the gauge up to date.
func (r *reporter) count(key types.NamespacedName, states []v1alpha1.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, state := range r.states[key] {
		syncs.WithLabelValues(r.kind, string(state)).Dec()
	}
	for _, state := range states {
		syncs.WithLabelValues(r.kind, string(state)).Inc()
	}
	if r.states[key] = states; states == nil {
		delete(r.states, key)
	}
}

// forget forgets an assemblage that is gone.
func (r *reporter) forget(key types.NamespacedName) { r.count(key, nil) }
