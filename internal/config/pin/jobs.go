package pin

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// The values of [vocabulary.JobPins]; those that begin with JobPinned are of a Job that may run.
const (
	JobWanted = "wanted"
	JobPinned = "set"
)

// IsHeld is true of a Job that is suspended until it has its pins.
func IsHeld(j *batchv1.Job) bool {
	state := vocabulary.JobPins.Get(j.Annotations)
	return state != "" && !strings.HasPrefix(state, JobPinned) && isSuspended(j)
}

// Hold does to a Job that is created, or updated if there was one before, what the policy does:
// it suspends one that asks for pins, has none, and would start. The Pod template of a Job can
// only be changed before it starts.
func Hold(j, before *batchv1.Job) {
	asks := vocabulary.PinConfig.Get(j.Annotations) == "true" && !strings.HasPrefix(vocabulary.JobPins.Get(j.Annotations), JobPinned)
	starts := !isSuspended(j) && (before == nil || isSuspended(before) && before.Status.StartTime == nil)
	if !asks || !starts {
		return
	}
	suspend := true
	j.Spec.Suspend, j.Annotations[vocabulary.JobPins.Native] = &suspend, JobWanted
}

func isSuspended(j *batchv1.Job) bool { return j.Spec.Suspend != nil && *j.Spec.Suspend }

// Inherit does to a CronJob that is created or updated what the policy does: its Jobs ask for
// pins as it does.
func Inherit(c *batchv1.CronJob) {
	asks, _, ok := vocabulary.PinConfig.Lookup(c.Annotations)
	if !ok {
		return
	}
	of := &c.Spec.JobTemplate.ObjectMeta
	if of.Annotations == nil {
		of.Annotations = map[string]string{}
	}
	of.Annotations[vocabulary.PinConfig.Native] = asks
}

// holdPolicy does what [Hold] does.
func holdPolicy() *admissionregistrationv1.MutatingAdmissionPolicySpec {
	return &admissionregistrationv1.MutatingAdmissionPolicySpec{
		MatchConstraints: matching("batch", "jobs", admissionregistrationv1.Create, admissionregistrationv1.Update),
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "asks", Expression: annotation("object", vocabulary.PinConfig) + " == 'true' && !" + annotation("object", vocabulary.JobPins) + ".startsWith('" + JobPinned + "')"},
			{Name: "starts", Expression: "!object.spec.?suspend.orValue(false) && (request.operation == 'CREATE' || " +
				"oldObject.spec.?suspend.orValue(false) && !has(oldObject.status.startTime))"},
		},
		Mutations: applying("Object{metadata: Object.metadata{annotations: {'" + vocabulary.JobPins.Native + "': '" + JobWanted + "'}}, spec: Object.spec{suspend: true}}"),
	}
}

// inheritPolicy does what [Inherit] does.
func inheritPolicy() *admissionregistrationv1.MutatingAdmissionPolicySpec {
	return &admissionregistrationv1.MutatingAdmissionPolicySpec{
		MatchConstraints: matching("batch", "cronjobs", admissionregistrationv1.Create, admissionregistrationv1.Update),
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "asks", Expression: "has(object.metadata.annotations) && '" + vocabulary.PinConfig.Native + "' in object.metadata.annotations"},
		},
		Mutations: applying("Object{spec: Object.spec{jobTemplate: Object.spec.jobTemplate{metadata: Object.spec.jobTemplate.metadata{annotations: {'" +
			vocabulary.PinConfig.Native + "': object.metadata.annotations['" + vocabulary.PinConfig.Native + "']}}}}}"),
	}
}

// annotation is the value of an annotation of an object, empty without.
func annotation(of string, key vocabulary.Key) string {
	return of + ".metadata.?annotations['" + key.Native + "'].orValue('')"
}

func applying(expression string) []admissionregistrationv1.Mutation {
	return []admissionregistrationv1.Mutation{{
		PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
		ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: expression},
	}}
}
