package forecast

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Supposition is something that may happen while rollouts go on.
type Supposition struct {
	// Event is one of [Suppositions].
	Event string
	// Of is what it happens to: the name of a gate, of a Pod or of a cluster, or "kind/name"
	// of what is paused.
	Of string
}

// The events that can be supposed.
const (
	// Approve approves each gate of this name, as soon as it waits.
	Approve = "approve"
	// Pause pauses a zone, or what else has a pause; "kind/name", or the name of a zone.
	Pause = "pause"
	// NeverReady has a Pod not become ready once it is replaced, or all Pods of "kind/name", or of
	// "kind/name@revision".
	NeverReady = "never-ready"
	// Lost has a cluster not carry out anything any more.
	Lost = "lost"
)

// Suppositions are the events, in the order in which they are listed.
func Suppositions() []string { return []string{Approve, Pause, NeverReady, Lost} }

// ParseSupposition reads "pause=zone-b".
func ParseSupposition(text string) (Supposition, error) {
	event, of, _ := strings.Cut(text, "=")
	if !slices.Contains(Suppositions(), event) || of == "" {
		return Supposition{}, fmt.Errorf("%q cannot be read; write %s=NAME", text, strings.Join(Suppositions(), "=NAME, "))
	}
	return Supposition{Event: event, Of: of}, nil
}

// String is the supposition as it is written.
func (s Supposition) String() string { return s.Event + "=" + s.Of }

// ErrNotSupposed is that what is supposed to happen can happen to nothing.
var ErrNotSupposed = errors.New("nothing of that name is under way; spillway status shows what is")

// suppose brings into the options what is supposed, and leaves alone what they share.
func suppose(o *simulate.Options, all []Supposition) error {
	o.Present, o.Readiness, o.Gates = slices.Clone(o.Present), o.Readiness.Clone(), map[string]v1alpha1.GateResult{}
	for _, s := range all {
		switch s.Event {
		case Approve:
			o.Gates[s.Of] = simulate.Approved
		case Pause:
			if err := pause(o.Present, s); err != nil {
				return err
			}
		case NeverReady, Lost:
			o.Readiness.Set(s.key(), world.Never)
		}
	}
	return nil
}

// key is what does not become ready, as [world.Readiness] names it.
func (s Supposition) key() string {
	switch {
	case s.Event == Lost:
		return record.Reference("cluster", s.Of)
	case strings.Contains(s.Of, "/"):
		kind, name, _ := strings.Cut(s.Of, "/")
		return record.Reference(kind, name)
	default:
		return record.Reference("pod", s.Of)
	}
}

// checkSupposed is an error if something that is supposed has happened to nothing.
func checkSupposed(c *simulate.Continued, all []Supposition) error {
	for _, each := range all {
		isUnmet := (each.Event == NeverReady || each.Event == Lost) && slices.Contains(c.Unmet, each.key())
		if isUnmet || each.Event == Approve && slices.Contains(c.UnmetGates, each.Of) {
			return fmt.Errorf("%s: %w", each, ErrNotSupposed)
		}
	}
	return nil
}

// pause replaces, among the objects, what is paused.
func pause(present []client.Object, s Supposition) error {
	kind, name, ok := strings.Cut(s.Of, "/")
	if !ok {
		kind, name = workload.StatefulSet, s.Of
	}
	for i, obj := range present {
		if obj.GetName() != name || !strings.EqualFold(kindOf(obj), kind) {
			continue
		}
		paused, isClient := obj.DeepCopyObject().(client.Object)
		if isClient && setPause(paused) {
			present[i] = paused
			return nil
		}
	}
	return fmt.Errorf("%s: %w", s, ErrNotSupposed)
}

func kindOf(obj client.Object) string {
	switch obj.(type) {
	case *appsv1.StatefulSet:
		return workload.StatefulSet
	case *appsv1.Deployment:
		return workload.Deployment
	case *appsv1.DaemonSet:
		return workload.DaemonSet
	case *v1alpha1.RolloutGroup:
		return "RolloutGroup"
	case *v1beta1.Instance:
		return "Instance"
	case *fleetv1.Module:
		return "Module"
	default:
		return ""
	}
}

// setPause pauses an object; false if that has no pause.
func setPause(obj client.Object) bool {
	switch o := obj.(type) {
	case *v1alpha1.RolloutGroup:
		o.Spec.Pause = &v1alpha1.Pause{}
	case *fleetv1.Module:
		o.Spec.Suspend = true
	case *appsv1.StatefulSet:
		annotate(o, vocabulary.Paused)
		annotate(o, vocabulary.RolloutPaused)
	case *appsv1.Deployment, *appsv1.DaemonSet, *v1beta1.Instance:
		annotate(o, vocabulary.Paused)
	default:
		return false
	}
	return true
}

func annotate(obj client.Object, key vocabulary.Key) {
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key.Native] = "true"
	obj.SetAnnotations(annotations)
}
