package describe

import (
	"strings"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/rollout"
)

// UnitOfGate is what a gate stands at, as a person calls it: "zone zone-a", "stage canary",
// "step deploy/brokers/first".
func UnitOfGate(g *v1alpha1.RolloutGate) string {
	stage := g.Spec.Stage
	switch g.Spec.TargetRef.Kind {
	case KindGroup:
		return "zone " + stage
	case KindInstance:
		units := []string{"plan", "phase", "step"}
		return units[min(strings.Count(stage, "/"), len(units)-1)] + " " + stage
	default:
		return "stage " + stage
	}
}

// RingOf is the ring that rolls objects of a kind.
func RingOf(kind string) string {
	switch kind {
	case KindGroup:
		return Zones
	case KindInstance:
		return Plans
	case workload.Deployment, workload.StatefulSet, workload.DaemonSet, KindConfigMap, KindSecret, KindPolicy, KindClusterPolicy:
		return Config
	default:
		return Fleet
	}
}

// IsAtGate is true of a unit that is in this state: it waits for a gate, or a gate was refused.
func IsAtGate(state string) bool {
	return state == string(rollout.ReasonGate) || state == string(rollout.ReasonGateRefused)
}
