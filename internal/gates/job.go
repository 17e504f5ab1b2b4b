package gates

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/measure"
	"github.com/spillway-dev/spillway/internal/gates/source"
	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/watch"
)

// Lengths of the names of Jobs: that of a Job is a label of its Pods.
const (
	jobHash   = 10
	jobPrefix = 52
)

// jobsKept is how many Jobs of a gate stay: those of the measurements in its status.
const jobsKept = 5

// jobs are the Jobs that run for gates.
type jobs struct {
	live    client.Reader
	writer  client.Writer
	watches *watch.Watches
}

// foundJob is the Job of the measurement that is due or under way. Without one, err says why that
// is not known.
type foundJob struct {
	job *batchv1.Job
	err error
}

// look reads the Job of the measurement that is due or under way, and from then on a change of it
// wakes the gate.
func (j *jobs) look(ctx context.Context, s *snapshot) foundJob {
	key := client.ObjectKey{Namespace: s.gate.Namespace, Name: s.jobName()}
	of := watch.Object{GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("Job"), NamespacedName: key}
	if err := j.watches.Follow(ctx, client.ObjectKeyFromObject(s.gate), of, true); err != nil {
		return foundJob{err: err}
	}
	job := &batchv1.Job{}
	err := j.live.Get(ctx, key, job)
	switch {
	case apierrors.IsNotFound(err):
		return foundJob{}
	case err != nil:
		return foundJob{err: fmt.Errorf("read Job %s: %w", key.Name, err)}
	default:
		return foundJob{job: job}
	}
}

// jobName is the name of the Job of the measurement that is due or under way.
func (s *snapshot) jobName() string {
	n := int32(0)
	if m := s.gate.Status.Measurement; m != nil && m.Template == versionOf(s.template) {
		n = m.Succeeded + m.Failed
	}
	return nameOfJob(s.gate, versionOf(s.template), n)
}

// nameOfJob is the name of the Job of the n-th measurement that counts: created twice, it is a
// conflict.
func nameOfJob(g *v1alpha1.RolloutGate, v v1alpha1.GateTemplateVersion, n int32) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%d", g.UID, v.UID, v.Generation, n))
	prefix := strings.ReplaceAll(g.Name, ".", "-")
	return strings.TrimRight(prefix[:min(len(prefix), jobPrefix)], "-") + "-" + hex.EncodeToString(sum[:])[:jobHash]
}

// follow decides about a measurement that a Job makes: one that is due begins, and one that is
// under way ends with its Job.
func (s *snapshot) follow(p *plan, next measure.Next) {
	found, recorded := s.found, p.state.Job
	ended := func(result v1alpha1.GateResult, value string) {
		at := s.now
		if recorded != nil {
			at = recorded.StartedAt.Time
		}
		p.sample = &measure.Sample{At: at, Result: result, Value: value, Sent: s.sentToJob()}
	}
	switch {
	case found.err != nil && recorded != nil: // it may run
		p.err = found.err
	case found.err != nil:
		ended(v1alpha1.GateError, found.err.Error())
	case recorded != nil && (found.job == nil || found.job.UID != recorded.UID):
		ended(v1alpha1.GateError, "Job "+recorded.Name+" was deleted before its end was seen")
	case found.job == nil:
		p.measure = true
	case !metav1.IsControlledBy(found.job, s.gate):
		ended(v1alpha1.GateError, "Job "+found.job.Name+" exists and is not of this gate; delete it")
	case health.IsOver(found.job):
		ended(resultOfJob(found.job))
	case found.job.DeletionTimestamp != nil:
		ended(v1alpha1.GateError, "Job "+found.job.Name+" is being deleted")
	case recorded == nil: // a manager has stopped after it had created it
		p.state.Job = record(found.job, s)
		p.persist = &p.state
	default:
		p.wake = next.End
	}
}

func (s *snapshot) sentToJob() string {
	return "Job " + s.jobName() + " of CronJob " + s.template.Spec.Job.CronJob
}

func record(job *batchv1.Job, s *snapshot) *v1alpha1.GateJob {
	return &v1alpha1.GateJob{Name: job.Name, UID: job.UID, StartedAt: metav1.NewMicroTime(s.now)}
}

func resultOfJob(job *batchv1.Job) (result v1alpha1.GateResult, value string) {
	end := health.EndOf(job)
	if end.Type == batchv1.JobComplete {
		return v1alpha1.GateSuccess, "Job " + job.Name + " succeeded"
	}
	return v1alpha1.GateFailure, "Job " + job.Name + " failed: " + end.Reason + ": " + end.Message
}

// start creates the Job of a measurement, of a gate that is as it was read. The state says that
// it runs, or what is wrong.
func (j *jobs) start(ctx context.Context, s *snapshot, p *plan) (measure.State, error) {
	if err := j.confirm(ctx, s.gate); err != nil {
		return p.state, err
	}
	job, err := j.create(ctx, s)
	if apierrors.IsAlreadyExists(err) {
		return p.state, apierrors.NewConflict(batchv1.Resource("jobs"), s.jobName(), err) //nolint:wrapcheck // it is looked at again
	}
	if err != nil {
		return measure.Add(p.state, p.rules, measure.Sample{At: s.now, Result: v1alpha1.GateError, Value: err.Error(), Sent: s.sentToJob()}), nil //nolint:nilerr // the state says it
	}
	state := p.state
	state.Job, state.Sent = record(job, s), s.sentToJob()
	return state, j.deleteOld(ctx, s, &p.state)
}

func (j *jobs) create(ctx context.Context, s *snapshot) (*batchv1.Job, error) {
	cronJob := &batchv1.CronJob{}
	name := s.template.Spec.Job.CronJob
	if err := j.live.Get(ctx, client.ObjectKey{Namespace: s.gate.Namespace, Name: name}, cronJob); err != nil {
		return nil, fmt.Errorf("read CronJob %s: %w", name, err)
	}
	if !mayRun(cronJob, s.gate.Spec.Gate) {
		return nil, fmt.Errorf("CronJob %s is not for gate %s; to permit it, name the gate in its annotation %s", name, s.gate.Spec.Gate, vocabulary.RunsForGates.Native)
	}
	job := newJob(cronJob, s.gate, s.jobName())
	err := ring.Do(ctx, nil, time.Time{}, func(ctx context.Context) error {
		return createJob(ctx, j.writer, job)
	})
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("the manager may not create Job %s: %w; if it lacks permission, bind a Role that allows to create and delete jobs to its ServiceAccount", job.Name, err)
	case err != nil:
		return nil, fmt.Errorf("create Job %s: %w", job.Name, err)
	default:
		return job, nil
	}
}

// mayRun is true if a CronJob itself names the gate: who may create a GateTemplate may not be
// allowed to run what others have prepared.
func mayRun(c *batchv1.CronJob, gate string) bool {
	named := strings.FieldsFunc(vocabulary.RunsForGates.Get(c.Annotations), func(r rune) bool { return r == ',' || r == ' ' })
	return slices.Contains(named, gate)
}

// newJob is the Job of a CronJob for a gate. It stays until its end was seen, whatever the
// CronJob says, and is deleted with the gate.
func newJob(c *batchv1.CronJob, g *v1alpha1.RolloutGate, name string) *batchv1.Job {
	template, yes := c.Spec.JobTemplate.DeepCopy(), true
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.Namespace, Name: name, Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RolloutGate", Name: g.Name, UID: g.UID, Controller: &yes}},
		},
		Spec: template.Spec,
	}
	metav1.SetMetaDataLabel(&job.ObjectMeta, vocabulary.GateJob.Native, "true")
	job.Spec.TTLSecondsAfterFinished = nil
	labels, pod := labelsOf(g), &job.Spec.Template.Spec
	for i := range pod.InitContainers {
		addEnv(&pod.InitContainers[i], labels)
	}
	for i := range pod.Containers {
		addEnv(&pod.Containers[i], labels)
	}
	return job
}

// addEnv adds the labels of a gate to a container, which keeps what it has of these names.
func addEnv(c *corev1.Container, labels source.Labels) {
	for _, name := range source.LabelNames() {
		variable := "SPILLWAY_" + strings.ToUpper(name)
		if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == variable }) {
			c.Env = append(c.Env, corev1.EnvVar{Name: variable, Value: strings.ReplaceAll(labels[name], "$", "$$")})
		}
	}
}

// deleteOld deletes the Job of the measurement that the status says nothing about any more.
func (j *jobs) deleteOld(ctx context.Context, s *snapshot, state *measure.State) error {
	n := state.Succeeded + state.Failed - jobsKept
	if n < 0 {
		return nil
	}
	key := client.ObjectKey{Namespace: s.gate.Namespace, Name: nameOfJob(s.gate, state.Template, n)}
	old := &batchv1.Job{}
	if err := j.live.Get(ctx, key, old); err != nil || !metav1.IsControlledBy(old, s.gate) {
		return client.IgnoreNotFound(err) //nolint:wrapcheck // the caller drops it
	}
	return j.delete(ctx, key, old.UID)
}

// confirm asks the API server itself whether a gate is as it was read: a Job runs once, and one
// that is waited for is not deleted, whatever the cache says.
func (j *jobs) confirm(ctx context.Context, g *v1alpha1.RolloutGate) error {
	return ring.Confirm(ctx, j.live, v1alpha1.GroupVersion.WithKind("RolloutGate"), g)
}

// stop deletes a Job that nothing waits for any more. Where the manager may not, it runs to its
// end.
func (j *jobs) stop(ctx context.Context, g *v1alpha1.RolloutGate, job *v1alpha1.GateJob) error {
	if err := j.confirm(ctx, g); err != nil {
		return err
	}
	err := j.delete(ctx, client.ObjectKey{Namespace: g.Namespace, Name: job.Name}, job.UID)
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// delete deletes a Job with its Pods, if it is the one that is meant.
func (j *jobs) delete(ctx context.Context, key client.ObjectKey, uid types.UID) error {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	err := deleteJob(ctx, j.writer, job, uid)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete Job %s: %w", key.Name, err)
	}
	return nil
}
