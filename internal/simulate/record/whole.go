package record

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// Unwhole are the workloads and Jobs of a namespace, of all if it is empty, that do not
// have what they ask for, each with what it lacks; but for those of which the rings have
// told already.
func Unwhole(ctx context.Context, reader client.Reader, namespace string, told []Wait) ([]Wait, error) {
	var unwhole []Wait
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}, &batchv1.JobList{}} {
		if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("find what is not complete: %w", err)
		}
		objects, err := apimeta.ExtractList(list)
		if err != nil {
			return nil, fmt.Errorf("find what is not complete: %w", err)
		}
		for _, obj := range objects {
			o, ok := obj.(client.Object)
			p := ProgressOf(o)
			if !ok || p.IsWhole() || isTold(told, o, p.Kind) {
				continue
			}
			wait, err := unwholeAs(ctx, reader, o, p)
			if err != nil {
				return nil, err
			}
			unwhole = append(unwhole, wait)
		}
	}
	slices.SortFunc(unwhole, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Object, b.Object))
	})
	return unwhole, nil
}

// isTold is true of what a ring waits for itself, or for the group that it is of.
func isTold(told []Wait, obj client.Object, kind string) bool {
	names := []string{Reference(kind, obj.GetName())}
	if group := vocabulary.GroupOf(obj.GetLabels(), obj.GetAnnotations()); kind == workload.StatefulSet && group != "" {
		names = append(names, Reference("RolloutGroup", group))
	}
	return slices.ContainsFunc(told, func(w Wait) bool {
		return w.Namespace == obj.GetNamespace() && slices.Contains(names, w.Object)
	})
}

func unwholeAs(ctx context.Context, reader client.Reader, obj client.Object, p Progress) (Wait, error) {
	w := Wait{
		Ring: Kubernetes, Namespace: obj.GetNamespace(), Object: Reference(p.Kind, obj.GetName()),
		Reason: rollout.ReasonFailed, Sentence: p.Kind + " " + obj.GetName() + " " + p.String(),
	}
	lacks, err := content.Lacks(ctx, reader, obj.GetNamespace(), p.pod)
	if len(lacks) > 0 {
		w.Reason = decision.ReasonConfigMissing
		w.Sentence = fmt.Sprintf("%s %s is waiting: %s", p.Kind, obj.GetName(), strings.Join(lacks, "; "))
	}
	return w, err
}

// Progress is how far Kubernetes has got with a workload or a Job.
type Progress struct {
	Kind string
	pod  *corev1.PodSpec
	// observed is true once its controller has seen what is asked for.
	observed bool
	// wanted are the Pods that are asked for, of them mustUpdate at the new template.
	wanted, mustUpdate int32
	// there are the Pods that there are, of them updated ones of the new template, and
	// available ones of any.
	there, updated, available int32
}

// ProgressOf is the progress of an object, that of nothing if it is of another kind.
func ProgressOf(obj client.Object) Progress {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return ofDeployment(o)
	case *appsv1.StatefulSet:
		return ofStatefulSet(o)
	case *appsv1.DaemonSet:
		return ofDaemonSet(o)
	case *batchv1.Job:
		return ofJob(o)
	default:
		return Progress{observed: true}
	}
}

func ofDeployment(d *appsv1.Deployment) Progress {
	wanted := ptr.Deref(d.Spec.Replicas, 1)
	p := Progress{
		Kind: workload.Deployment, pod: &d.Spec.Template.Spec, observed: d.Status.ObservedGeneration >= d.Generation,
		wanted: wanted, mustUpdate: wanted,
		there: d.Status.Replicas, updated: d.Status.UpdatedReplicas, available: d.Status.AvailableReplicas,
	}
	if d.Spec.Paused {
		p.mustUpdate = 0
	}
	return p
}

// ofStatefulSet asks for no more new Pods than its strategy makes.
func ofStatefulSet(s *appsv1.StatefulSet) Progress {
	p := Progress{
		Kind: workload.StatefulSet, pod: &s.Spec.Template.Spec, observed: s.Status.ObservedGeneration >= s.Generation, wanted: ptr.Deref(s.Spec.Replicas, 1),
		there: s.Status.Replicas, updated: s.Status.UpdatedReplicas, available: s.Status.AvailableReplicas,
	}
	if p.mustUpdate = p.wanted; s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		p.mustUpdate = 0
	}
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		p.mustUpdate = max(0, p.mustUpdate-*rolling.Partition)
	}
	return p
}

func ofDaemonSet(d *appsv1.DaemonSet) Progress {
	p := Progress{
		Kind: workload.DaemonSet, pod: &d.Spec.Template.Spec, observed: d.Status.ObservedGeneration >= d.Generation,
		wanted: d.Status.DesiredNumberScheduled, mustUpdate: d.Status.DesiredNumberScheduled,
		there: d.Status.DesiredNumberScheduled, updated: d.Status.UpdatedNumberScheduled, available: d.Status.NumberAvailable,
	}
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		p.mustUpdate = 0
	}
	return p
}

// ofJob has one thing that is asked for: that it completes. One that has failed is
// over, which the ring that waits for it reports; one that is suspended asks for nothing.
func ofJob(j *batchv1.Job) Progress {
	p := Progress{Kind: KindJob, pod: &j.Spec.Template.Spec, observed: true, wanted: 1, there: 1}
	if health.IsOver(j) || j.Spec.Suspend != nil && *j.Spec.Suspend {
		p.available = 1
	}
	return p
}

// KindJob is the kind of Jobs.
const KindJob = "Job"

// IsWhole is true if everything that is asked for exists.
func (p *Progress) IsWhole() bool {
	return p.observed && p.updated >= p.mustUpdate && p.available >= p.wanted && (p.mustUpdate == 0 || p.there <= p.wanted)
}

// String is what is missing yet, as what follows the name.
func (p *Progress) String() string {
	if p.Kind == KindJob {
		return "is not done"
	}
	text := fmt.Sprintf("is not ready: %d of %d Pods are available", p.available, p.wanted)
	if p.updated < p.mustUpdate || p.available >= p.wanted {
		text += fmt.Sprintf(", %d are up to date", p.updated)
	}
	return text
}

// Missing is how many of its Pods are not available.
func (p *Progress) Missing() int { return int(max(0, p.wanted-p.available)) }
