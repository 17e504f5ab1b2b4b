package revisions

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/pods"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Referrer is a workload or Pod that refers to a snapshot.
type Referrer struct {
	Kind, Name string
	// Pins are what it refers to.
	Pins pin.Pins
	// Revision is the number of the revision of a workload, 0 for its present Pod template, and
	// of a Pod.
	Revision int64
}

// Refers is true if it refers to the snapshot of a pin.
func (r *Referrer) Refers(to pin.Pin) bool {
	p, ok := r.Pins.Of(to.Kind, to.Name)
	return ok && p == to
}

// ReferrersIn are what refers to snapshots in a namespace: the Pod templates of workloads,
// their revisions, and Pods.
func ReferrersIn(ctx context.Context, reader client.Reader, namespace string) ([]Referrer, error) {
	workloads, err := workload.List(ctx, reader, []string{namespace})
	if err != nil {
		return nil, err
	}
	var all []Referrer
	for _, obj := range workloads {
		name := workload.NameOf(obj)
		if pins := pinsOf(workload.TemplateOf(obj).Annotations); len(pins) > 0 {
			all = append(all, Referrer{Kind: name.Kind, Name: name.Name, Pins: pins})
		}
	}
	kept, err := keptIn(ctx, reader, namespace, workloads)
	if err != nil {
		return nil, err
	}
	running := &corev1.PodList{}
	if err := reader.List(ctx, running, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list Pods: %w", err)
	}
	all = append(all, kept...)
	for i := range running.Items {
		p := &running.Items[i]
		pins := pinsOf(p.Annotations)
		if len(pins) > 0 && !pods.IsOver(p) {
			all = append(all, Referrer{Kind: "Pod", Name: p.Name, Pins: pins})
		}
	}
	return all, nil
}

// keptIn are the revisions of some workloads that have pins.
func keptIn(ctx context.Context, reader client.Reader, namespace string, workloads []client.Object) ([]Referrer, error) {
	sets, revisions := &appsv1.ReplicaSetList{}, &appsv1.ControllerRevisionList{}
	for _, list := range []client.ObjectList{sets, revisions} {
		if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list revisions: %w", err)
		}
	}
	var all []Referrer
	add := func(of client.Object, r *Revision) {
		i := slices.IndexFunc(workloads, func(obj client.Object) bool { return metav1.IsControlledBy(of, obj) })
		if pins := pinsOf(r.Template.Annotations); i >= 0 && len(pins) > 0 {
			name := workload.NameOf(workloads[i])
			all = append(all, Referrer{Kind: name.Kind, Name: name.Name, Pins: pins, Revision: r.Number})
		}
	}
	for i := range sets.Items {
		r := ofReplicaSet(&sets.Items[i])
		add(&sets.Items[i], &r)
	}
	for i := range revisions.Items {
		if r, ok := ofControllerRevision(&revisions.Items[i]); ok {
			add(&revisions.Items[i], &r)
		}
	}
	slices.SortStableFunc(all, func(a, b Referrer) int { return int(b.Revision - a.Revision) })
	return all, nil
}

func pinsOf(annotations map[string]string) pin.Pins {
	return pin.Mentioned(vocabulary.Pins.Get(annotations))
}

// RefersTo is true if a Pod template refers to an object by its volumes or environment.
func RefersTo(template *corev1.PodTemplateSpec, kind content.Kind, name string) bool {
	return slices.Contains(pin.References(&template.Spec), pin.Reference{Kind: kind, Name: name})
}
