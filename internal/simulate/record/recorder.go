package record

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Recorder reads the steps from what changes in an API. It must see all
// changes in their order.
type Recorder struct {
	steps    []Step
	decision int
	// revisions are those of each StatefulSet, numbered as they are first seen.
	revisions map[types.NamespacedName][]string
	// leaving are the steps of Pods that went, until another of the name exists.
	leaving map[types.NamespacedName]int
	groups  map[types.NamespacedName]string
	// replicas are the ordinals that each StatefulSet of a group is to have.
	replicas map[types.NamespacedName]ordinals
	// changed are the workloads of which Kubernetes has not begun to roll a new template,
	// rolling those with which it is not done.
	changed, rolling map[Key]bool
}

// NewRecorder makes a recorder for an API in which there is nothing.
func NewRecorder() *Recorder {
	return &Recorder{
		revisions: map[types.NamespacedName][]string{}, leaving: map[types.NamespacedName]int{}, groups: map[types.NamespacedName]string{},
		replicas: map[types.NamespacedName]ordinals{},
		changed:  map[Key]bool{}, rolling: map[Key]bool{},
	}
}

// Clone returns a recorder that has seen the same, and shares nothing.
func (r *Recorder) Clone() *Recorder {
	c := *r
	c.steps = slices.Clip(r.steps)
	c.revisions, c.leaving, c.groups, c.replicas = maps.Clone(r.revisions), maps.Clone(r.leaving), maps.Clone(r.groups), maps.Clone(r.replicas)
	c.changed, c.rolling = maps.Clone(r.changed), maps.Clone(r.rolling)
	if len(r.leaving) > 0 { // what takes their place is written into their steps
		c.steps = slices.Clone(r.steps)
	}
	return &c
}

// Begin tells that what follows is of another decision than what was before.
func (r *Recorder) Begin() { r.decision++ }

// Forget forgets all steps so far. The revisions of StatefulSets are counted from
// those that these Pods have, the oldest Pod first.
func (r *Recorder) Forget(pods []client.Object) {
	r.steps = nil
	clear(r.leaving)
	clear(r.revisions)
	clear(r.changed)
	clear(r.rolling)
	pods = slices.SortedStableFunc(slices.Values(pods), func(a, b client.Object) int {
		return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
	})
	for _, obj := range pods {
		for _, set := range SetsOf(obj) {
			r.number(set, obj.GetLabels()[appsv1.StatefulSetRevisionLabel])
		}
	}
}

// Steps are the steps so far. What one decision of the config ring has written
// together is sorted by name.
func (r *Recorder) Steps() []Step {
	steps := slices.Clone(r.steps)
	slices.SortStableFunc(steps, func(a, b Step) int {
		if a.Decision != b.Decision || a.Ring != RingConfig || b.Ring != RingConfig {
			return a.Decision - b.Decision
		}
		return strings.Compare(a.Namespace+"/"+a.Object, b.Namespace+"/"+b.Object)
	})
	return steps
}

// See tells of a change; before is nil of what is new, after of what is gone.
func (r *Recorder) See(at time.Duration, before, after client.Object) {
	is := after
	if is == nil {
		is = before
	}
	switch is := is.(type) {
	case *appsv1.Deployment:
		old, _ := before.(*appsv1.Deployment)
		now, _ := after.(*appsv1.Deployment)
		if old != nil && now != nil {
			r.workload(at, old, now)
			r.hashed(at, is, "deployment", old.Spec.Template.Annotations, now.Spec.Template.Annotations)
		}
	case *appsv1.DaemonSet:
		old, _ := before.(*appsv1.DaemonSet)
		now, _ := after.(*appsv1.DaemonSet)
		if old != nil && now != nil {
			r.workload(at, old, now)
			r.hashed(at, is, "daemonset", old.Spec.Template.Annotations, now.Spec.Template.Annotations)
		}
	case *appsv1.StatefulSet:
		old, _ := before.(*appsv1.StatefulSet)
		now, _ := after.(*appsv1.StatefulSet)
		r.set(at, old, now)
	case *corev1.Pod:
		old, _ := before.(*corev1.Pod)
		now, _ := after.(*corev1.Pod)
		r.pod(at, old, now)
	case *fleetv1.ProxyAssemblage:
		r.assemblage(at, model.KindModule, before, after)
	case *fleetv1.RemoteAssemblage:
		r.assemblage(at, model.KindBootstrap, before, after)
	case *v1beta1.Instance:
		old, _ := before.(*v1beta1.Instance)
		now, _ := after.(*v1beta1.Instance)
		r.instance(at, old, now)
	}
}

// pod sees Pods of groups go, and what takes their place.
func (r *Recorder) pod(at time.Duration, before, after *corev1.Pod) {
	pod := after
	if pod == nil {
		pod = before
	}
	for _, set := range SetsOf(pod) {
		group, key := r.groups[set], client.ObjectKeyFromObject(pod)
		revision := r.number(set, RevisionOf(pod))
		switch {
		case group == "" || !r.replicas[set].has(key.Name):
		case before == nil:
			if i, ok := r.leaving[key]; ok {
				r.steps[i].To = revision
				delete(r.leaving, key)
			}
		case before.DeletionTimestamp == nil && (after == nil || after.DeletionTimestamp != nil):
			r.leaving[key] = len(r.steps)
			r.step(Step{
				At: Offset(at), Ring: RingZones, Namespace: key.Namespace, Object: Reference("RolloutGroup", group),
				Unit: set.Name + "/" + key.Name, Does: "is updated", From: revision,
			})
		}
	}
}

// number counts the revisions of a StatefulSet.
func (r *Recorder) number(set types.NamespacedName, revision string) string {
	i := slices.Index(r.revisions[set], revision)
	if i < 0 {
		i = len(r.revisions[set])
		r.revisions[set] = append(slices.Clip(r.revisions[set]), revision)
	}
	return fmt.Sprintf("r%d", i+1)
}

// set sees what becomes of a StatefulSet.
func (r *Recorder) set(at time.Duration, before, after *appsv1.StatefulSet) {
	if after == nil {
		return
	}
	key := client.ObjectKeyFromObject(after)
	r.groups[key], r.replicas[key] = vocabulary.GroupOf(after.Labels, after.Annotations), ordinalsOf(after)
	if before == nil {
		return
	}
	r.scaled(at, before, after)
	r.workload(at, before, after)
	r.hashed(at, after, "statefulset", before.Spec.Template.Annotations, after.Spec.Template.Annotations)
	if does := opening(before, after); does != "" && r.groups[key] != "" {
		r.step(Step{
			At: Offset(at), Ring: RingZones, Namespace: key.Namespace, Object: Reference("RolloutGroup", r.groups[key]), Unit: key.Name, Does: does,
		})
	}
}

// hashed sees whether a workload got another config hash.
func (r *Recorder) hashed(at time.Duration, obj client.Object, kind string, before, after map[string]string) {
	from, to := vocabulary.ConfigHash.Get(before), vocabulary.ConfigHash.Get(after)
	if from == to || to == "" {
		return
	}
	r.step(Step{
		At: Offset(at), Ring: RingConfig, Namespace: obj.GetNamespace(), Object: Reference(kind, obj.GetName()),
		Does: "rolls", From: short(from), To: short(to),
	})
}

func (r *Recorder) step(s Step) {
	s.Decision = r.decision
	r.steps = append(r.steps, s)
}

func short(hash string) string { return hash[:min(len(hash), 7)] }

// opening is what a change of the strategy comes to, empty if to nothing.
func opening(before, after *appsv1.StatefulSet) string {
	was, is := isOpen(before), isOpen(after)
	switch {
	case was == is:
		return ""
	case is:
		return "is opened"
	default:
		return "is held"
	}
}

// isOpen is true while nothing keeps the Pods of a StatefulSet from its new revision.
func isOpen(s *appsv1.StatefulSet) bool {
	if vocabulary.LentStrategy.Get(s.Annotations) != "" {
		return true
	}
	if s.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		return false
	}
	rolling := s.Spec.UpdateStrategy.RollingUpdate // the API server leaves it out where only the type is written
	return rolling == nil || rolling.Partition == nil || *rolling.Partition < max(1, ptr.Deref(s.Spec.Replicas, 1))
}

// RevisionOf returns the revision of a StatefulSet that a Pod has.
func RevisionOf(pod *corev1.Pod) string { return pod.Labels[appsv1.StatefulSetRevisionLabel] }

// SetsOf is the key of the StatefulSet that controls a Pod, if one does.
func SetsOf(obj client.Object) []types.NamespacedName {
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil || owner.Kind != "StatefulSet" {
		return nil
	}
	return []types.NamespacedName{{Namespace: obj.GetNamespace(), Name: owner.Name}}
}
