package revisions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Revision is a Pod template that a workload has or had.
type Revision struct {
	// Number is as kubectl rollout history shows it.
	Number  int64
	Created time.Time
	// Template is the Pod template as the workload had it.
	Template corev1.PodTemplateSpec
	// Pins are those of the template; none if it has none, or they cannot be read.
	Pins pin.Pins
	// Current is true if the workload has this template.
	Current bool
}

// deploymentRevision is where the controller of Deployments writes the number.
const deploymentRevision = "deployment.kubernetes.io/revision"

// Of are the revisions of a workload, the newest first: ReplicaSets of a Deployment,
// ControllerRevisions of the others.
func Of(ctx context.Context, reader client.Reader, obj client.Object) ([]Revision, error) {
	found, err := list(ctx, reader, obj)
	if err != nil {
		return nil, fmt.Errorf("list the revisions of %s %s: %w", workload.KindOf(obj), obj.GetName(), err)
	}
	now := workload.TemplateOf(obj)
	for i := range found {
		r := &found[i]
		r.Current = equality.Semantic.DeepEqual(&r.Template, now)
		r.Pins, _ = pin.Parse(vocabulary.Pins.Get(r.Template.Annotations))
	}
	slices.SortFunc(found, func(a, b Revision) int { return int(b.Number - a.Number) })
	return found, nil
}

func list(ctx context.Context, reader client.Reader, obj client.Object) ([]Revision, error) {
	var found []Revision
	if _, ok := obj.(*appsv1.Deployment); ok {
		sets := &appsv1.ReplicaSetList{}
		if err := reader.List(ctx, sets, client.InNamespace(obj.GetNamespace())); err != nil {
			return nil, err //nolint:wrapcheck // the caller says of what
		}
		for i := range sets.Items {
			if set := &sets.Items[i]; metav1.IsControlledBy(set, obj) {
				found = append(found, ofReplicaSet(set))
			}
		}
		return found, nil
	}
	all := &appsv1.ControllerRevisionList{}
	if err := reader.List(ctx, all, client.InNamespace(obj.GetNamespace())); err != nil {
		return nil, err //nolint:wrapcheck // the caller says of what
	}
	for i := range all.Items {
		if of := &all.Items[i]; metav1.IsControlledBy(of, obj) {
			if r, ok := ofControllerRevision(of); ok {
				found = append(found, r)
			}
		}
	}
	return found, nil
}

func ofReplicaSet(set *appsv1.ReplicaSet) Revision {
	number, _ := strconv.ParseInt(set.Annotations[deploymentRevision], 10, 64)
	r := Revision{Number: number, Created: set.CreationTimestamp.Time, Template: *set.Spec.Template.DeepCopy()}
	delete(r.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return r
}

// ofControllerRevision reads the part of a StatefulSet or DaemonSet that a revision keeps;
// false if it is not of one.
func ofControllerRevision(of *appsv1.ControllerRevision) (Revision, bool) {
	kept := struct {
		Spec struct {
			Template *corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}{}
	if err := json.Unmarshal(of.Data.Raw, &kept); err != nil || kept.Spec.Template == nil {
		return Revision{}, false
	}
	return Revision{Number: of.Revision, Created: of.CreationTimestamp.Time, Template: *kept.Spec.Template}, true
}

// Present is the Pod template of a workload of which no revision is kept yet. It has no number.
func Present(obj client.Object) Revision {
	r := Revision{Template: *workload.TemplateOf(obj).DeepCopy(), Current: true}
	r.Pins, _ = pin.Parse(vocabulary.Pins.Get(r.Template.Annotations))
	return r
}

// Numbered is the revision of a number, nil if it is not kept.
func Numbered(all []Revision, number int64) *Revision {
	i := slices.IndexFunc(all, func(r Revision) bool { return r.Number == number })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// Previous is the newest revision that is not the current one, nil if none is kept.
func Previous(all []Revision) *Revision {
	i := slices.IndexFunc(all, func(r Revision) bool { return !r.Current })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// Pinned is the newest revision with these pins of which the template is otherwise that of a
// workload, nil if none is kept.
func Pinned(all []Revision, obj client.Object, pins pin.Pins) *Revision {
	bare := workload.Bare(obj)
	i := slices.IndexFunc(all, func(r Revision) bool {
		return r.Pins.String() == pins.String() && equality.Semantic.DeepEqual(workload.BareTemplate(&r.Template), bare)
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}
