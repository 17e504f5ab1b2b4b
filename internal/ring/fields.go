package ring

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/rollout"
)

// LimitOf is a number or a percentage as the engine knows it; nil is no limit. The API server
// has checked that it is one or the other. What it has not checked counts as 0, which lets
// least move.
func LimitOf(v *intstr.IntOrString) rollout.Limit {
	switch {
	case v == nil:
		return rollout.Limit{}
	case v.Type == intstr.Int:
		return rollout.Number(v.IntValue())
	}
	percent := 0
	_, _ = fmt.Sscanf(v.StrVal, "%d%%", &percent)
	return rollout.Percentage(percent)
}

// TimeOf is a moment of a status, zero for none.
func TimeOf(t *metav1.MicroTime) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// PhaseOf is the phase of what waits for a reason, or moves if there is none.
func PhaseOf(reason rollout.Reason) rollout.Phase {
	switch reason {
	case "", rollout.ReasonProgressing:
		return rollout.PhaseProgressing
	case rollout.ReasonPaused:
		return rollout.PhasePaused
	case rollout.ReasonFailed, rollout.ReasonDeadline, rollout.ReasonGateRefused:
		return rollout.PhaseFailed
	default:
		return rollout.PhaseWaiting
	}
}

// PauseOf is a pause as the engine knows it, nil for none.
func PauseOf(p *v1alpha1.Pause) *rollout.Pause {
	if p == nil {
		return nil
	}
	pause := &rollout.Pause{By: p.By, Reason: p.Reason}
	if p.Since != nil {
		pause.Since = p.Since.Time
	}
	return pause
}
