package simulate

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// bringAbout makes what stands in manifests run: as if nothing had been paused and
// every gate, window and soak had passed since. All that is in force again from then on.
func (s *simulation) bringAbout(ctx context.Context, base []*unstructured.Unstructured) error {
	free := unhindered(base)
	if err := s.change(ctx, free); err != nil {
		return err
	}
	var hindered []*unstructured.Unstructured
	for i := range base {
		if !equality.Semantic.DeepEqual(base[i], free[i]) {
			hindered = append(hindered, base[i])
		}
	}
	return s.change(ctx, hindered)
}

// unhindered are the objects without what lets them run only later, or only once a
// person has seen to it.
func unhindered(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	free := make([]*unstructured.Unstructured, 0, len(objects))
	for _, obj := range objects {
		u := obj.DeepCopy()
		resume(u)
		switch u.GetKind() {
		case workload.Deployment:
			unstructured.RemoveNestedField(u.Object, "spec", "paused")
		case "RolloutGroup":
			for _, field := range []string{"pause", "maintenanceWindows", "soak", "gates"} {
				unstructured.RemoveNestedField(u.Object, "spec", field)
			}
		case policy.Kind, policy.ClusterKind:
			unhinderPolicy(u)
		case model.KindModule, model.KindBootstrap:
			unhinderModule(u)
		}
		free = append(free, u)
	}
	return free
}

// resume takes away the annotations that pause an object, or have it wait for gates.
func resume(u *unstructured.Unstructured) {
	annotations := u.GetAnnotations()
	for _, key := range []vocabulary.Key{vocabulary.Paused, vocabulary.RolloutPaused, vocabulary.PlanGates} {
		for _, name := range slices.Concat([]string{key.Native}, key.Aliases) {
			delete(annotations, name)
		}
	}
	if len(annotations) < len(u.GetAnnotations()) {
		u.SetAnnotations(annotations)
	}
}

// unhinderPolicy keeps the stages, which say in which order workloads are rolled.
func unhinderPolicy(u *unstructured.Unstructured) {
	for _, field := range []string{"pause", "maintenanceWindows", "soak"} {
		unstructured.RemoveNestedField(u.Object, "spec", field)
	}
	withoutInStages(u, []string{"spec", "stages"}, "soak", "gates")
}

// unhinderModule keeps the stages, which say where anything is to run at all.
func unhinderModule(u *unstructured.Unstructured) {
	unstructured.RemoveNestedField(u.Object, "spec", "suspend")
	for _, field := range []string{"windows", "minReadySeconds"} {
		unstructured.RemoveNestedField(u.Object, "spec", "rollout", field)
	}
	withoutInStages(u, []string{"spec", "rollout", "stages"}, "gates", "soakSeconds")
}

// withoutInStages removes fields of stages.
func withoutInStages(u *unstructured.Unstructured, at []string, names ...string) {
	stages, ok, err := unstructured.NestedSlice(u.Object, at...)
	if !ok || err != nil {
		return
	}
	for _, stage := range stages {
		if fields, is := stage.(map[string]any); is {
			for _, name := range names {
				delete(fields, name)
			}
		}
	}
	_ = unstructured.SetNestedSlice(u.Object, stages, at...) // it was one before
}
