// Package right follows the rules.
package right

import (
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

const (
	// ReasonHeld: it is
	// held.
	// Action: let it
	// go.
	ReasonHeld rollout.Reason = "Held"
	// ReasonCondition: it is so.
	// Action: nothing.
	ReasonCondition rollout.Reason = "Condition"
	// ReasonMapped: it is so.
	// Action: nothing.
	ReasonMapped rollout.Reason = "Mapped"
	// ReasonCounted: it is so.
	// Action: nothing.
	ReasonCounted rollout.Reason = "Counted"
	// ReasonTold: it is so.
	// Action: nothing.
	ReasonTold rollout.Reason = "Told"
	// ReasonInvalid is what others say too.
	ReasonInvalid = reasons.Invalid
)

// ReasonAlone: it is so.
// Action: nothing.
const ReasonAlone rollout.Reason = "Alone"

var (
	waiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{}, []string{"name", "reason"})
	mapped  = map[string]rollout.Reason{"a": ReasonMapped}
)

type verdict struct{ reason rollout.Reason }

func block() *rollout.Block { return &rollout.Block{Reason: ReasonHeld} }

func judge(name string) (v verdict, ok bool) {
	switch name {
	case "":
		return verdict{reason: ReasonCondition}, true
	case "alone":
		v.reason = ReasonAlone
		return v, true
	default:
		return verdict{mapped[name]}, false
	}
}

func condition(name string) metav1.Condition {
	v, _ := judge(name)
	c := metav1.Condition{Reason: string(v.reason)}
	c.Reason = condition(c.Reason).Reason
	return c
}

func count(name string, holds []rollout.Hold) {
	counts := map[rollout.Reason]int{ReasonCounted: 0}
	for i := range holds {
		counts[holds[i].Reason]++
	}
	for reason := range counts {
		waiting.WithLabelValues(name, string(reason)).Inc()
	}
}

func tell(r events.EventRecorder, about runtime.Object, reason rollout.Reason) {
	r.Eventf(about, nil, "Normal", string(reason), "Act", "told")
}

func tellAll(r events.EventRecorder, about runtime.Object) {
	tell(r, about, ReasonTold)
	tell(r, about, ReasonInvalid)
}

func was(c *metav1.Condition) rollout.Reason { return rollout.Reason(c.Reason) }
