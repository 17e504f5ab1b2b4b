package outcome

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/rollout"
)

// Reporter emits the Events and metrics of the assemblages of a kind.
type Reporter struct {
	events events.EventRecorder
	kind   string

	mu sync.Mutex
	// states are those of the syncs of each assemblage in its last pass.
	states map[types.NamespacedName][]v1alpha1.State
}

// NewReporter returns a reporter for a kind.
func NewReporter(recorder events.EventRecorder, kind string) *Reporter {
	return &Reporter{events: recorder, kind: kind, states: map[types.NamespacedName][]v1alpha1.State{}}
}

// eventReasons are the reasons of the Events of the states that have one.
var eventReasons = map[v1alpha1.State]rollout.Reason{
	v1alpha1.StateSucceeded: EventSucceeded, v1alpha1.StateFailed: EventFailed,
	v1alpha1.StateWaiting: EventWaiting, v1alpha1.StateUnreachable: EventWaiting,
}

// Report emits what has changed in a status. It sends Events only if that was written.
func (r *Reporter) Report(obj metav1.Object, gvk schema.GroupVersionKind, was, now *v1alpha1.AssemblageStatus, written bool) {
	states := make([]v1alpha1.State, 0, len(now.Syncs))
	before := map[string]*v1alpha1.SyncStatus{}
	for i := range was.Syncs {
		before[was.Syncs[i].Name] = &was.Syncs[i]
	}
	for i := range now.Syncs {
		s := &now.Syncs[i]
		states = append(states, s.State)
		if written && eventReasons[s.State] != "" && r.isNews(before[s.Name], s) {
			r.events.Eventf(referenceTo(obj, gvk), nil, eventType(s.State), string(eventReasons[s.State]), "Sync", "%s", message.Cut("sync "+s.Name+": "+s.Message, message.NoteLength))
		}
	}
	r.count(types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}, states)
}

// isNews reports whether a state is new. That all went well on a cluster is said there, by the Assemblage, and not
// once more for each cluster by the hub.
func (r *Reporter) isNews(was, now *v1alpha1.SyncStatus) bool {
	if r.kind == "ProxyAssemblage" && now.State == v1alpha1.StateSucceeded && (was == nil || was.State == v1alpha1.StateUpdating) {
		return false
	}
	return was == nil || was.State != now.State || was.Revision != now.Revision
}

func referenceTo(obj metav1.Object, gvk schema.GroupVersionKind) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
	}
}

func eventType(s v1alpha1.State) string {
	if s == v1alpha1.StateSucceeded {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// count updates the gauge.
func (r *Reporter) count(key types.NamespacedName, states []v1alpha1.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, state := range r.states[key] {
		metrics.FleetSyncs.WithLabelValues(r.kind, string(state)).Dec()
	}
	for _, state := range states {
		metrics.FleetSyncs.WithLabelValues(r.kind, string(state)).Inc()
	}
	if r.states[key] = states; states == nil {
		delete(r.states, key)
	}
}

// Forget drops the state of a deleted assemblage.
func (r *Reporter) Forget(key types.NamespacedName) { r.count(key, nil) }
