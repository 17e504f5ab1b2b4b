package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// Step is a unit that moves.
type Step struct {
	// At is when, since the change.
	At time.Duration `json:"at"`
	// Ring is the ring that has taken it, or Kubernetes.
	Ring string `json:"ring"`
	// Object is what is rolled out, "deployment/web" or "rolloutgroup/ingester".
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
	// Unit is the part of it that moves, "zone-a/zone-a-0"; empty if it moves whole.
	Unit string `json:"unit,omitempty"`
	// Does is what happens: "rolls:", "goes", "is opened", "begins".
	Does string `json:"does"`
	// From and To are revisions: hashes, or numbers that count the revisions of a zone.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Decision counts decisions: steps of the same one are taken at once.
	Decision int `json:"decision"`
}

// String is the step without its time, as a line shows it.
func (s Step) String() string {
	text := s.Object
	if s.Unit != "" {
		text += " " + s.Unit[strings.LastIndex(s.Unit, "/")+1:]
	}
	if s.Ring == RingPlans {
		text = s.Object + " " + s.Unit
	}
	text += " " + s.Does
	switch {
	case s.From != "" && s.To != "":
		text += " " + s.From + " → " + s.To
	case s.To != "":
		text += " " + s.To
	}
	return text
}

// Wait is why something has not moved at some moment, in the words of its ring.
type Wait struct {
	// At is since when, since the change.
	At        time.Duration `json:"at"`
	Ring      string        `json:"ring"`
	Object    string        `json:"object"`
	Namespace string        `json:"namespace"`
	// Reason is the engine's or the ring's word for it; Sentence is that of its status.
	Reason   rollout.Reason `json:"reason,omitempty"`
	Sentence string         `json:"sentence"`
	// Next is when its ring looks again, of what waits in the end because that is later
	// than was looked ahead; zero of everything else.
	Next time.Time `json:"next,omitzero"`
}

// Recorder reads the steps from what changes in an API. It has to be told of all
// changes in their order.
type Recorder struct {
	steps    []Step
	decision int
	// revisions are those of each StatefulSet, numbered as they are first seen.
	revisions map[types.NamespacedName][]string
	// leaving are the steps of Pods that went, until another of the name is there.
	leaving map[types.NamespacedName]int
	groups  map[types.NamespacedName]string
	// changed are the workloads of which Kubernetes has not begun to roll a new template,
	// rolling those with which it is not done.
	changed, rolling map[unit]bool
}

// NewRecorder makes a recorder for an API in which there is nothing.
func NewRecorder() *Recorder {
	return &Recorder{
		revisions: map[types.NamespacedName][]string{}, leaving: map[types.NamespacedName]int{}, groups: map[types.NamespacedName]string{},
		changed: map[unit]bool{}, rolling: map[unit]bool{},
	}
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
		for _, set := range keysOfSet(obj) {
			r.number(set, obj.GetLabels()[appsv1.StatefulSetRevisionLabel])
		}
	}
}

// Steps are the steps so far. What one decision of the config ring has written at
// once comes by name.
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

func (r *Recorder) step(s Step) {
	s.Decision = r.decision
	r.steps = append(r.steps, s)
}

// reference is a kind and a name as commands take them.
func reference(kind, name string) string { return strings.ToLower(kind) + "/" + name }

// hashed sees whether a workload got another config hash.
func (r *Recorder) hashed(at time.Duration, obj client.Object, kind string, before, after map[string]string) {
	from, to := vocabulary.ConfigHash.Get(before), vocabulary.ConfigHash.Get(after)
	if from == to || to == "" {
		return
	}
	r.step(Step{
		At: at, Ring: RingConfig, Namespace: obj.GetNamespace(), Object: reference(kind, obj.GetName()),
		Does: "rolls:", From: short(from), To: short(to),
	})
}

func short(hash string) string { return hash[:min(len(hash), 7)] }

// set sees what becomes of a StatefulSet.
func (r *Recorder) set(at time.Duration, before, after *appsv1.StatefulSet) {
	if after == nil {
		return
	}
	key := client.ObjectKeyFromObject(after)
	r.groups[key] = vocabulary.GroupOf(after.Labels, after.Annotations)
	if before == nil {
		return
	}
	r.workload(at, before, after)
	r.hashed(at, after, "statefulset", before.Spec.Template.Annotations, after.Spec.Template.Annotations)
	if does := opening(before, after); does != "" && r.groups[key] != "" {
		r.step(Step{
			At: at, Ring: RingZones, Namespace: key.Namespace, Object: reference("RolloutGroup", r.groups[key]), Unit: key.Name, Does: does,
		})
	}
}

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

// pod sees Pods of groups go, and what takes their place.
func (r *Recorder) pod(at time.Duration, before, after *corev1.Pod) {
	pod := after
	if pod == nil {
		pod = before
	}
	for _, set := range keysOfSet(pod) {
		group, key := r.groups[set], client.ObjectKeyFromObject(pod)
		revision := r.number(set, revisionOf(pod))
		switch {
		case group == "":
		case before == nil:
			if i, ok := r.leaving[key]; ok {
				r.steps[i].To = revision
				delete(r.leaving, key)
			}
		case before.DeletionTimestamp == nil && (after == nil || after.DeletionTimestamp != nil):
			r.leaving[key] = len(r.steps)
			r.step(Step{
				At: at, Ring: RingZones, Namespace: key.Namespace, Object: reference("RolloutGroup", group),
				Unit: set.Name + "/" + key.Name, Does: "goes", From: revision,
			})
		}
	}
}

// number counts the revisions of a StatefulSet.
func (r *Recorder) number(set types.NamespacedName, revision string) string {
	i := slices.Index(r.revisions[set], revision)
	if i < 0 {
		i = len(r.revisions[set])
		r.revisions[set] = append(r.revisions[set], revision)
	}
	return fmt.Sprintf("r%d", i+1)
}
