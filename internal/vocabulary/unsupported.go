package vocabulary

import (
	"maps"
	"slices"
	"strings"
)

// unsupported are labels and annotations that are proposed for rollout-operator, without their
// domain, and what to use instead. Spillway reads none of them.
var unsupported = map[string]instead{
	"rollout-canary": {
		zone:       "roll one zone first with spec.zoneOrder of the RolloutGroup, and hold the others with a gate",
		deployment: "set spec.paused of the Deployment until the other one is ready, or have a plan apply one after the other; for changes of config, a ConfigPolicy has stages",
	},
	"rollout-revision": {
		zone:       "change the Pod templates of all zones, which then roll one after the other",
		deployment: "set spec.paused of the Deployment until the other one is ready, or have a plan apply one after the other",
	},
	"rollout-bypass-until": {
		zone:       "pause and resume the RolloutGroup, or set its spec.maintenanceWindows",
		deployment: "set spec.paused of the Deployment to false; nothing else holds it",
	},
	"rollout-health-check": {
		zone:       "give the RolloutGroup a gate, which asks the same before each zone",
		deployment: "give the plan that applies the Deployment a gate, which asks the same",
	},
}

// instead is what to use in place of what is proposed: for a zone of a group, and for a Deployment.
type instead struct{ zone, deployment string }

// proposedIn is their domain.
const proposedIn = "grafana.com/"

// UnsupportedKind is the kind that is proposed for rollout-operator, and that Spillway does not
// have; InsteadOfKind is what to use for it.
const (
	UnsupportedKind = "RolloutHealthCheck"
	InsteadOfKind   = "write a GateTemplate with the same queries, and name it among the gates of the RolloutGroup"
)

// WithoutEffect is a label or an annotation that has no effect though it is meant for Spillway, and what
// to do instead.
type WithoutEffect struct{ Name, Instead string }

// Unsupported says what to use instead of a label or an annotation of a kind, empty if it is none of
// those that are proposed for rollout-operator.
func Unsupported(kind, name string) string {
	found := unsupported[strings.TrimPrefix(name, proposedIn)]
	if kind == "Deployment" {
		return found.deployment
	}
	return found.zone
}

// IgnoredOn are the labels and annotations of a workload that have no effect though they are
// meant for Spillway: those that are proposed, and of a StatefulSet a label that stands among the
// annotations.
func IgnoredOn(kind string, labels, annotations map[string]string) []WithoutEffect {
	var found []WithoutEffect
	for _, prefix := range []string{proposedIn, ""} {
		for _, proposed := range slices.Sorted(maps.Keys(unsupported)) {
			name := prefix + proposed
			_, isLabel := labels[name]
			if _, isAnnotation := annotations[name]; isLabel || isAnnotation {
				found = append(found, WithoutEffect{name, Unsupported(kind, name)})
			}
		}
	}
	if _, name, misplaced := PrepareDownscale.Lookup(annotations); misplaced && kind != "Deployment" && PrepareDownscale.Get(labels) == "" {
		found = append(found, WithoutEffect{name, "make it a label; its Pods are not prepared before they are removed"})
	}
	return found
}
