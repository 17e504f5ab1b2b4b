package pin_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

const (
	asks  = "spillway.dev/pin-config"
	state = "spillway.dev/job-pins"
)

func newJob(k *creator, name string, suspend *bool, annotations map[string]string) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name, Annotations: annotations}}
	j.Spec.Suspend = suspend
	j.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "x"}}}
	return j
}

// The policies make of Jobs and CronJobs what the functions make of them, when they are created
// and when they are updated.
func TestThePoliciesHoldJobsAsTheFunction(t *testing.T) {
	k, yes, no := newCreator(t), true, false
	all := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	jobs := k.c.BatchV1().Jobs(k.namespace)
	testenv.Eventually(t, func(ctx context.Context) error { // until the API server applies it
		got, err := jobs.Create(ctx, newJob(k, "first", nil, map[string]string{asks: "true"}), all)
		if err == nil && got.Annotations[state] == "" {
			return fmt.Errorf("the policy does not apply yet: %v", got.Annotations)
		}
		return err
	})
	for i, annotations := range []map[string]string{
		nil, {"other": "true"}, {asks: "true"}, {asks: "false"}, {asks: "yes"}, {asks: "true", state: "set"}, {asks: "true", state: "set without pins: x"},
		{asks: "true", state: "wanted"}, {asks: "true", state: "waiting: Secret db not found"}, {asks: "true", state: ""},
	} {
		for _, suspend := range []*bool{nil, &yes, &no} {
			name := fmt.Sprintf("job-%d", i)
			want := newJob(k, name, suspend, annotations).DeepCopy()
			pin.Hold(want, nil)
			got, err := jobs.Create(t.Context(), newJob(k, name, suspend, annotations), all)
			compareJobs(t, fmt.Sprintf("created %v, suspended %v", annotations, suspend != nil && *suspend), want, got, err)
			for _, was := range []*bool{&yes, &no} { // each is updated from one that is not touched
				plain := newJob(k, "", was, nil)
				plain.GenerateName = "job-"
				before, err := jobs.Create(t.Context(), plain, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				now := before.DeepCopy()
				now.ResourceVersion, now.Annotations, now.Spec.Suspend = "", annotations, suspend
				want := now.DeepCopy()
				pin.Hold(want, before)
				got, err := jobs.Update(t.Context(), now, metav1.UpdateOptions{DryRun: all.DryRun})
				compareJobs(t, fmt.Sprintf("updated from suspended %v: %v, suspended %v", *was, annotations, suspend != nil && *suspend), want, got, err)
			}
		}
	}
}

func compareJobs(t *testing.T, what string, want, got *batchv1.Job, err error) {
	t.Helper()
	switch {
	case err != nil:
		t.Errorf("%s: %v", what, err)
	case pin.IsHeld(got) != pin.IsHeld(want) || got.Annotations[state] != want.Annotations[state] || *got.Spec.Suspend != (want.Spec.Suspend != nil && *want.Spec.Suspend):
		t.Errorf("%s: the policy makes %v, suspended %v; the function %v", what, got.Annotations, *got.Spec.Suspend, want.Annotations)
	}
}

// A CronJob hands what it says to its Jobs, and nothing else.
func TestACronJobHandsOnWhatItSays(t *testing.T) {
	k := newCreator(t)
	for _, says := range []map[string]string{nil, {"other": "x"}, {asks: "true"}, {asks: "false"}} {
		for _, of := range []map[string]string{nil, {"own": "y"}, {asks: "true"}} {
			c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "nightly", Annotations: says}}
			c.Spec.Schedule, c.Spec.JobTemplate.Annotations = "0 3 * * *", of
			c.Spec.JobTemplate.Spec = newJob(k, "", nil, nil).Spec
			want := c.DeepCopy()
			pin.Inherit(want)
			testenv.Eventually(t, func(ctx context.Context) error { // until the API server applies it
				got, err := k.c.BatchV1().CronJobs(k.namespace).Create(ctx, c, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				if err == nil && !maps.Equal(got.Spec.JobTemplate.Annotations, want.Spec.JobTemplate.Annotations) {
					return fmt.Errorf("%v of %v: the policy makes %v, and the function %v", says, of, got.Spec.JobTemplate.Annotations, want.Spec.JobTemplate.Annotations)
				}
				return err
			})
		}
	}
}
