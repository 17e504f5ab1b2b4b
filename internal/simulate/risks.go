package simulate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/simulate/models"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
	"github.com/spillway-dev/spillway/internal/zones/decision"
	"github.com/spillway-dev/spillway/internal/zones/scaling"
)

// Risk is what could get stuck, though it did not in this simulation.
type Risk struct {
	// Object is what it is about.
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
	// Sentence says what would happen, and Fix what to do.
	Sentence string `json:"sentence"`
	Action   string `json:"action"`
}

// risks are the deadlines that are too short, and what stops if the first Pod that
// moves is never ready: that is tried in the same world once more.
func (s *simulation) risks(ctx context.Context, again *simulation, change []*unstructured.Unstructured, result *Result) ([]Risk, error) {
	risks := slices.Concat(s.conflicts, s.deadlines(), s.unplayed(change))
	if len(result.Steps) == 0 {
		return risks, nil
	}
	if err := again.begin(ctx); err != nil {
		return risks, err
	}
	again.Broken = firstUnit(result.Steps)
	if err := again.change(ctx, change); err != nil || again.Broken.Kind == world.First {
		return risks, err
	}
	return append(risks, again.stops(result.Steps)...), nil
}

// firstUnit is the first Pod or workload that moves.
func firstUnit(steps []record.Step) record.Key {
	for _, s := range steps {
		kind, name, _ := strings.Cut(s.Object, "/")
		switch _, pod, ok := strings.Cut(s.Unit, "/"); {
		case s.Ring == record.RingZones && ok:
			return record.KeyOf("pod", s.Namespace, pod)
		case s.Ring == record.Kubernetes:
			return record.KeyOf(kind, s.Namespace, name)
		case s.Ring == record.RingFleet:
			return record.KeyOf("cluster", s.Namespace, s.Unit)
		case s.Ring == record.RingConfig && !slices.ContainsFunc(steps, func(z record.Step) bool { return z.Ring == record.RingZones && strings.HasPrefix(z.Unit, name+"/") }):
			return record.KeyOf(kind, s.Namespace, name)
		}
	}
	return record.Key{Kind: world.First}
}

// stops says which of the steps are not taken with a unit that is never ready.
func (s *simulation) stops(steps []record.Step) []Risk {
	taken := map[string]bool{}
	for _, step := range s.Recorder.Steps() {
		taken[step.Namespace+" "+step.Object+" "+step.Unit+" "+step.Does] = true
	}
	missing := slices.DeleteFunc(slices.Clone(steps), func(step record.Step) bool {
		if step.Ring == record.Kubernetes && step.Object == s.Broken.Kind+"/"+s.Broken.Name {
			return true // that it is not done itself goes without saying
		}
		return taken[step.Namespace+" "+step.Object+" "+step.Unit+" "+step.Does]
	})
	if len(missing) == 0 {
		return nil
	}
	risk := Risk{Object: s.Broken.Kind + "/" + s.Broken.Name, Namespace: s.Broken.Namespace}
	risk.Sentence = fmt.Sprintf("if it is never ready, %d of %d steps are not taken (first: %s)", len(missing), len(steps), missing[0])
	risk.Action = "undo the change, or fix it"
	if i := slices.IndexFunc(s.waiting, func(w record.Wait) bool { return w.Object == missing[0].Object }); i >= 0 {
		risk.Action += "; " + s.waiting[i].Object + " then reports: " + s.waiting[i].Sentence
	}
	return []Risk{risk}
}

// unplayed are the StatefulSets whose replicas follow what is changed: that is not
// simulated.
func (s *simulation) unplayed(change []*unstructured.Unstructured) []Risk {
	var risks []Risk
	for _, obj := range s.Store.Objects(&appsv1.StatefulSet{}, "") {
		follows := followed(obj.GetLabels(), obj.GetAnnotations())
		changes := func(u *unstructured.Unstructured) bool {
			return slices.Contains([]string{"", obj.GetNamespace()}, u.GetNamespace()) && slices.Contains(follows, u.GetKind()+" "+u.GetName())
		}
		if s.GroupOf(obj) == "" || !slices.ContainsFunc(change, changes) {
			continue
		}
		risks = append(risks, Risk{
			Object: "statefulset/" + obj.GetName(), Namespace: obj.GetNamespace(),
			Sentence: "its replicas follow " + strings.Join(follows, ", ") + ", which is changed, and scaling is not simulated: here they stay as they are",
			Action:   "apply the change, and see what its replicas wait for: spillway explain rolloutgroup/" + s.GroupOf(obj),
		})
	}
	return risks
}

// followed are the objects whose replicas a StatefulSet follows.
func followed(labels, annotations map[string]string) []string {
	var follows []string
	settings := scaling.SettingsOf(labels, annotations)
	if settings.Leader != "" {
		follows = append(follows, "StatefulSet "+settings.Leader)
	}
	if settings.Mirror != nil {
		follows = append(follows, settings.Mirror.String())
	}
	return follows
}

// deadlines are those that pass before Pods are ready, by what was said of them.
func (s *simulation) deadlines() []Risk {
	var risks []Risk
	for _, obj := range s.Store.Objects(&appsv1.Deployment{}, "") {
		if d, ok := obj.(*appsv1.Deployment); ok {
			risks = s.deadline(risks, "deployment/"+d.Name, d.Namespace, s.options.Readiness.For("deployment", d.Name), *d.Spec.ProgressDeadlineSeconds, "spec.progressDeadlineSeconds")
		}
	}
	for _, obj := range s.Store.Objects(&appsv1.StatefulSet{}, "") {
		set, ok := obj.(*appsv1.StatefulSet)
		group := s.GroupOf(obj)
		if !ok || group == "" {
			continue
		}
		grace := min(decision.GraceOf(set), 24*time.Hour)
		deadline := max(600, 570+int32(grace/time.Second)) //nolint:gosec // at most a day
		written, _ := s.Store.Object(&v1alpha1.RolloutGroup{}, types.NamespacedName{Namespace: set.Namespace, Name: group}).(*v1alpha1.RolloutGroup)
		if written != nil && written.Spec.ProgressDeadlineSeconds != nil {
			deadline = *written.Spec.ProgressDeadlineSeconds
		}
		risks = s.deadline(risks, "statefulset/"+set.Name, set.Namespace, s.replacing(set), deadline,
			"spec.progressDeadlineSeconds of RolloutGroup "+group)
	}
	return risks
}

// replacing is how long it takes until a Pod is gone and its successor is ready.
func (s *simulation) replacing(set *appsv1.StatefulSet) time.Duration {
	ready := s.options.Readiness.For("statefulset", set.Name)
	if ready == world.Never {
		return world.Never
	}
	return ready + models.Stopping(&set.Spec.Template.Spec, s.options.Stop)
}

func (s *simulation) deadline(risks []Risk, object, namespace string, ready time.Duration, seconds int32, field string) []Risk {
	deadline := time.Duration(seconds) * time.Second
	if ready == world.Never || ready < deadline {
		return risks
	}
	return append(risks, Risk{
		Object: object, Namespace: namespace,
		Sentence: fmt.Sprintf("a Pod takes %s until it is replaced and ready, and its progress deadline is %s: the rollout counts as stalled before it is done", ready, deadline),
		Action:   "make " + field + " longer",
	})
}
