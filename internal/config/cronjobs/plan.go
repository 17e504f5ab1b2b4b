package cronjobs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// plan is the one write to make, if any.
type plan struct {
	// create is the Job to create.
	create *batchv1.Job
	// register adds the Job to those that are active.
	register bool
	// resume starts the Job, which says from then on that it runs with this record.
	resume string
	// record is what the CronJob records from now on, empty if that stays.
	record string
	// wake is when time alone changes something, zero for never.
	wake time.Time
}

// decide is pure: a change is first recorded, or starts a Job, which is registered and resumed; then the record is
// of what the Job runs with.
func decide(o *observed) plan {
	switch {
	case o.Record == "":
		return plan{record: o.Next}
	case o.job != nil:
		return goOn(o)
	case o.IsRecorded:
		return plan{}
	case len(o.Changed) == 0 || isTrue(o.cronJob.Spec.Suspend):
		return plan{record: o.Next}
	case len(o.Missing) > 0:
		return plan{}
	case o.Now.Before(o.Settled):
		return plan{wake: o.Settled}
	case isExclusive(o.cronJob) && len(o.cronJob.Status.Active) > 0:
		return plan{} // the status changes once they have ended
	default:
		return plan{create: jobFor(o)}
	}
}

// goOn continues with a Job that exists. The policy may have been edited since it was created. Only what was created
// suspended is resumed: another client, such as a queue of Jobs or what pins them, may have suspended it as well.
func goOn(o *observed) plan {
	c := o.cronJob
	isQueued := o.job.Labels[vocabulary.ConfigRun.Native] == queued && isTrue(o.job.Spec.Suspend) && !pin.IsHeld(o.job)
	if !isQueued { // no other Job gets its name
		return plan{record: cmp.Or(vocabulary.ConfigSeen.Get(o.job.Annotations), o.Next)}
	}
	isActive := slices.ContainsFunc(c.Status.Active, func(a corev1.ObjectReference) bool { return a.UID == o.job.UID })
	switch {
	case isTrue(c.Spec.Suspend):
		return plan{}
	case isExclusive(c) && !isActive:
		return plan{register: true}
	case isExclusive(c) && len(c.Status.Active) > 1:
		return plan{} // as above
	default:
		return plan{resume: o.Next}
	}
}

// The values of [vocabulary.ConfigRun].
const (
	queued  = "queued"
	started = "started"
)

func isTrue(b *bool) bool { return b != nil && *b }

// isExclusive reports whether one run of a CronJob must not be beside another.
func isExclusive(c *batchv1.CronJob) bool {
	return c.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent || c.Spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent
}

// jobName is the name of the Job that ends a record. That of a CronJob has at most 52 characters.
func jobName(of, record string) string {
	sum := sha256.Sum256([]byte(record))
	return of + "-" + hex.EncodeToString(sum[:5])
}

// jobFor is the Job for a change, as kubectl create job --from makes it.
func jobFor(o *observed) *batchv1.Job {
	c, template := o.cronJob, o.cronJob.Spec.JobTemplate.DeepCopy()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.Namespace, Name: jobName(c.Name, o.Record),
		Labels: map[string]string{}, Annotations: map[string]string{"cronjob.kubernetes.io/instantiate": "manual"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, batchv1.SchemeGroupVersion.WithKind("CronJob"))},
	}, Spec: template.Spec}
	maps.Copy(job.Labels, template.Labels)
	maps.Copy(job.Annotations, template.Annotations)
	job.Labels[vocabulary.ConfigRun.Native], job.Annotations[vocabulary.ConfigSeen.Native] = started, o.Next
	if isExclusive(c) && !isTrue(job.Spec.Suspend) {
		suspend := true
		job.Labels[vocabulary.ConfigRun.Native], job.Spec.Suspend = queued, &suspend
	}
	return job
}
