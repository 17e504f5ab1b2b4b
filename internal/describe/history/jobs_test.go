package history

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/describe"
)

// A Job shows the config that its Pods keep, a Job that is suspended what it waits for, and one
// without pins why. A CronJob shows its Jobs, the newest first, and no other ones.
func TestJobsShowTheirPins(t *testing.T) {
	of := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "nightly", UID: "1"}}
	const asks, state = "spillway.dev/pin-config", "spillway.dev/job-pins"
	job := func(name string, minute int, annotations map[string]string, pins string) *batchv1.Job {
		at, yes := metav1.NewTime(noon.Add(time.Duration(minute)*time.Minute)), true
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), CreationTimestamp: at, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: of.Name, UID: of.UID, Controller: &yes}},
		}}
		if pins != "" {
			j.Spec.Template.Annotations = map[string]string{"spillway.dev/pins": pins}
		}
		j.Status.StartTime = &at
		return j
	}
	suspended := func(name string, minute int, why string) *batchv1.Job {
		j, yes := job(name, minute, map[string]string{asks: "true", state: why}, ""), true
		j.Spec.Suspend, j.Status.StartTime = &yes, nil
		return j
	}
	pinned := map[string]string{asks: "true", state: pin.JobPinned}
	complete, failed := job("complete", 1, pinned, "secret/db=0123456789"), job("failed", 2, pinned, "cm/app=absent")
	ended := metav1.NewTime(noon.Add(5 * time.Minute))
	complete.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: ended}}
	failed.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}, {Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: ended},
	}
	foreign := job("foreign", 9, nil, "")
	foreign.OwnerReferences = nil
	reader := clusterWith(t, of, complete, failed, foreign, job("many", 3, map[string]string{asks: "true", state: "set without pins: it refers to more than 40"}, ""),
		job("nothing", 4, pinned, ""), job("plain", 5, nil, ""), job("elsewhere", 6, map[string]string{asks: "true"}, ""),
		suspended("waits", 7, "waiting: Secret db not found"), suspended("wanted", 8, "wanted"))
	checkHistory(t, reader, describe.Ref{Kind: "CronJob", Namespace: "shop", Name: "nightly"}, `
Job wanted||||?..?||is suspended until the manager has set its pins
Job waits||||?..?||is suspended until its pins can be set: Secret db not found
Job elsewhere||||6m0s..?|Running|no pins: pins were not enabled in its namespace when it was created
Job plain||||5m0s..?|Running|no pins: without the annotation spillway.dev/pin-config: "true" its Pods use the present config
Job nothing||||4m0s..?|Running|no pins: it refers to no ConfigMap or Secret
Job many||||3m0s..?|Running|no pins: it refers to more than 40
Job failed||||2m0s..5m0s|Failed|
  ConfigMap app|?..?||did not exist
Job complete||||1m0s..5m0s|Complete|
  Secret db-0123456789|?..?|NotFound|
`)
	checkHistory(t, reader, describe.Ref{Kind: "Job", Namespace: "shop", Name: "complete"}, `
Job complete||||1m0s..5m0s|Complete|
  Secret db-0123456789|?..?|NotFound|
`)
}
