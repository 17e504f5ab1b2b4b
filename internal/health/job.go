package health

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// IsOver is true of a Job that is complete or has failed: no Pod of it is created any more.
func IsOver(j *batchv1.Job) bool { return EndOf(j) != nil }

// EndOf is the condition of a Job that is complete or has failed, nil of another one.
func EndOf(j *batchv1.Job) *batchv1.JobCondition {
	at := slices.IndexFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
	if at < 0 {
		return nil
	}
	return &j.Status.Conditions[at]
}
