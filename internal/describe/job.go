package describe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// HeldText is why a Job is suspended that asks for pins, as a clause about it.
func HeldText(j *batchv1.Job) string {
	if why, waits := strings.CutPrefix(vocabulary.JobPins.Get(j.Annotations), "waiting: "); waits {
		return "is suspended until its pins can be set: " + why
	}
	return "is suspended until the manager has set its pins"
}

// UnpinnedText is why the Pods of a Job use the present config, as a clause about it; empty if they
// keep the config that the Job started with.
func UnpinnedText(j *batchv1.Job) string {
	state := vocabulary.JobPins.Get(j.Annotations)
	why, released := strings.CutPrefix(state, pin.JobPinned+" without pins: ")
	switch {
	case vocabulary.Pins.Get(j.Spec.Template.Annotations) != "":
		return ""
	case released:
		return "no pins: " + why
	case state == pin.JobPinned:
		return "no pins: it refers to no ConfigMap or Secret"
	case vocabulary.PinConfig.Get(j.Annotations) != "true":
		return "no pins: without the annotation " + vocabulary.PinConfig.Native + `: "true" its Pods use the present config`
	default:
		return "no pins: pins were not enabled in its namespace when it was created"
	}
}

// reloaderFacts say that annotations of Reloader roll no Job.
func reloaderFacts(kind string, annotations map[string]string, instead string) []Fact {
	rolling := vocabulary.ReloaderRolling(annotations)
	if len(rolling) == 0 {
		return nil
	}
	return []Fact{FactOf("not rolled", "annotation "+rolling[0]+" has no effect with Spillway, which rolls no "+kind+": "+instead)}
}

// JobFacts are the pins of a Job, or why it has none.
func JobFacts(j *batchv1.Job) []Fact {
	return append(jobPins(j), reloaderFacts(KindJob, j.Annotations, "it runs once")...)
}

func jobPins(j *batchv1.Job) []Fact {
	if pin.IsHeld(j) {
		return nil
	}
	if why := UnpinnedText(j); why != "" {
		return []Fact{FactOf("pinned", why)}
	}
	var f []Fact
	for _, p := range pin.Mentioned(vocabulary.Pins.Get(j.Spec.Template.Annotations)) {
		f = append(f, FactOf("pinned", p.String()))
	}
	return f
}

// JobsOf are the Jobs that Kubernetes keeps of a CronJob, in no order.
func JobsOf(ctx context.Context, reader client.Reader, of *batchv1.CronJob) ([]batchv1.Job, error) {
	all := &batchv1.JobList{}
	if err := reader.List(ctx, all, client.InNamespace(of.Namespace)); err != nil {
		return nil, fmt.Errorf("list the Jobs of %s: %w", RefTo(KindCronJob, of), err)
	}
	return slices.DeleteFunc(all.Items, func(j batchv1.Job) bool { return !metav1.IsControlledBy(&j, of) }), nil
}

// CronJobFacts say whether the next Job of a CronJob is pinned, and whether a change of its config starts one.
func CronJobFacts(c *batchv1.CronJob) []Fact {
	if vocabulary.ConfigSeen.Get(c.Annotations) != "" {
		return append(cronJobPins(c), FactOf("runs", "for each change of its config, by annotations of Reloader"))
	}
	return append(cronJobPins(c), reloaderFacts(KindCronJob, c.Annotations, "its next run has the new config")...)
}

func cronJobPins(c *batchv1.CronJob) []Fact {
	if vocabulary.PinConfig.Get(c.Spec.JobTemplate.Annotations) == "true" {
		return []Fact{FactOf("pinned", "its next Job keeps the config that exists when it starts")}
	}
	if vocabulary.PinConfig.Get(c.Annotations) == "true" {
		return []Fact{FactOf("pinned", "no: pins were not enabled in its namespace when it was written; enable them, and apply it again")}
	}
	return []Fact{FactOf("pinned", "no: without the annotation "+vocabulary.PinConfig.Native+`: "true" its Pods use the present config`)}
}

// UnpinnedFacts say that an object asks for pins in vain, as one of its kind can have none. A ReplicaSet that has
// a controller has the annotations of that, which may have them.
func UnpinnedFacts(kind string, obj client.Object) []Fact {
	said, instead := vocabulary.PinsWithoutEffect(kind, obj.GetAnnotations())
	if said == "" || metav1.GetControllerOf(obj) != nil {
		return nil
	}
	return []Fact{FactOf("not pinned", "annotation "+said+". "+instead)}
}
