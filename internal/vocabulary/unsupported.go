package vocabulary

import (
	"maps"
	"slices"
	"strings"
)

// unsupported are labels and annotations that are proposed for rollout-operator, without their
// domain, and what to use instead. Spillway reads none of them.
var unsupported = map[string]string{
	"rollout-canary":       "roll one zone first with spec.zoneOrder of the RolloutGroup, and hold the others with a gate",
	"rollout-bypass-until": "pause and resume the RolloutGroup, or set its spec.maintenanceWindows",
	"rollout-health-check": "give the RolloutGroup a gate, which asks the same before each zone",
}

// proposedIn is their domain.
const proposedIn = "grafana.com/"

// UnsupportedKind is the kind that is proposed for rollout-operator, and that Spillway does not
// have.
const UnsupportedKind = "RolloutHealthCheck"

// WithoutEffect is a label or an annotation that has no effect though it is meant for Spillway, and what
// to do instead.
type WithoutEffect struct{ Name, Instead string }

// Unsupported says what to use instead of a label or an annotation, empty if it is none of those
// that are proposed for rollout-operator.
func Unsupported(name string) string {
	return unsupported[strings.TrimPrefix(name, proposedIn)]
}

// IgnoredOn are the labels and annotations of a StatefulSet that have no effect though they are
// meant for Spillway: those that are proposed, and a label that stands among the annotations.
func IgnoredOn(labels, annotations map[string]string) []WithoutEffect {
	var found []WithoutEffect
	for _, prefix := range []string{proposedIn, ""} {
		for _, proposed := range slices.Sorted(maps.Keys(unsupported)) {
			name := prefix + proposed
			_, isLabel := labels[name]
			if _, isAnnotation := annotations[name]; isLabel || isAnnotation {
				found = append(found, WithoutEffect{name, unsupported[proposed]})
			}
		}
	}
	if _, name, misplaced := PrepareDownscale.Lookup(annotations); misplaced && PrepareDownscale.Get(labels) == "" {
		found = append(found, WithoutEffect{name, "make it a label; its Pods are not prepared before they are removed"})
	}
	return found
}
