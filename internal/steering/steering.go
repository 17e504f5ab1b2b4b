package steering

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// The verbs that Roles can grant besides patch. Approving and refusing a gate takes none: it is
// a patch of rolloutgates/status, which can be granted alone. Nor do rollbacks and pins: they
// change what is rolled out, to what the person chooses.
const (
	Pause  = "pause"
	Resume = "resume"
	Retry  = "retry"
)

// target are resources on which the same acts are done in the same way.
type target struct {
	// name is that of the policy, ring the one that declares it.
	name, ring     string
	group, version string
	resources      []string
	acts           []act
	// rest are the fields besides those of acts that the object has beside its metadata.
	rest []string
}

// act is what changes when an object is paused or resumed, or retried.
type act struct {
	// isPaused is true, in CEL, of what is paused afterwards; empty of what retries.
	isPaused string
	// annotations and fields, of the spec, are what it changes.
	annotations, fields []string
}

var targets = []target{
	{
		name: "workloads", ring: metrics.RingConfig, group: appsv1.GroupName, version: "v1", resources: []string{"daemonsets", "deployments", "statefulsets"},
		acts: []act{pausedByAnnotation()}, rest: []string{"spec"},
	},
	{
		name: "configmaps", ring: metrics.RingConfig, group: corev1.GroupName, version: "v1", resources: []string{"configmaps"},
		acts: []act{pausedByAnnotation(), retriedBy(vocabulary.RetryConfig)}, rest: []string{"data", "binaryData", "immutable"},
	},
	{
		name: "secrets", ring: metrics.RingConfig, group: corev1.GroupName, version: "v1", resources: []string{"secrets"},
		acts: []act{pausedByAnnotation(), retriedBy(vocabulary.RetryConfig)}, rest: []string{"data", "type", "immutable"},
	},
	{
		name: "policies", ring: metrics.RingConfig, group: v1alpha1.GroupVersion.Group, version: v1alpha1.GroupVersion.Version,
		resources: []string{"clusterconfigpolicies", "configpolicies"}, acts: []act{pausedByField()},
	},
	{
		name: "groups", ring: metrics.RingZones, group: v1alpha1.GroupVersion.Group, version: v1alpha1.GroupVersion.Version,
		resources: []string{"rolloutgroups"}, acts: []act{pausedByField(), {fields: []string{"retry"}}},
	},
	{
		name: "instances", ring: metrics.RingPlans, group: v1beta1.GroupVersion.Group, version: v1beta1.GroupVersion.Version, resources: []string{"instances"},
		acts: []act{pausedByAnnotation(), retriedBy(vocabulary.RetryPlan)}, rest: []string{"spec"},
	},
	{
		name: "modules", ring: metrics.RingFleet, group: fleetv1.GroupVersion.Group, version: fleetv1.GroupVersion.Version, resources: []string{"bootstrapmodules", "modules"},
		acts: []act{{
			isPaused: "object.spec.?suspend.orValue(false)", annotations: vocabulary.Steered.Names(), fields: []string{"suspend"},
		}, retriedBy(vocabulary.RetryModule)},
	},
}

// pausedByAnnotation is what pauses and resumes what is paused by an annotation.
func pausedByAnnotation() act {
	return act{
		isPaused:    "variables.is[?'" + vocabulary.Paused.Native + "'].orValue('') == 'true'",
		annotations: append(vocabulary.Paused.Names(), vocabulary.PausedBy.Names()...),
	}
}

// pausedByField is what pauses and resumes what is paused by a field.
func pausedByField() act {
	return act{isPaused: "has(object.spec.pause)", fields: []string{"pause"}}
}

// retriedBy is what retries by an annotation.
func retriedBy(key vocabulary.Key) act { return act{annotations: key.Names()} }

// verbs are those that it can be.
func (a *act) verbs() []string {
	if a.isPaused == "" {
		return []string{Retry}
	}
	return []string{Pause, Resume}
}

// verbs are those of all acts.
func (t *target) verbs() []string {
	var verbs []string
	for i := range t.acts {
		verbs = append(verbs, t.acts[i].verbs()...)
	}
	return verbs
}

// inWords are the verbs, in words.
func (t *target) inWords() string {
	verbs := t.verbs()
	last := len(verbs) - 1
	return strings.Join(verbs[:last], ", ") + " and " + verbs[last]
}

// Verbs are those that can be granted on a resource, none if it has none.
func Verbs(group, resource string) []string {
	for i := range targets {
		if t := &targets[i]; t.group == group && slices.Contains(t.resources, resource) {
			return t.verbs()
		}
	}
	return nil
}
