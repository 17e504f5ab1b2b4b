package models

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// statefulSets is the controller of StatefulSets, as that of Kubernetes 1.37 decides
// (pkg/controller/statefulset/stateful_set_control.go), without volumes.
type statefulSets struct {
	*world.World

	// templates are the Pod templates of all revisions, by the name of the revision.
	templates map[string]corev1.PodTemplateSpec
	// seen are the names of revisions that a cluster has given.
	seen map[seenTemplate]string
}

// seenTemplate is a template of a StatefulSet.
type seenTemplate struct {
	uid         types.UID
	fingerprint string
}

// Wakes implements [world.Actor].
func (c *statefulSets) Wakes(before, after client.Object) []types.NamespacedName {
	obj := after
	if obj == nil {
		obj = before
	}
	switch o := obj.(type) {
	case *appsv1.StatefulSet:
		return []types.NamespacedName{client.ObjectKeyFromObject(o)}
	case *corev1.Pod:
		return record.SetsOf(o)
	default:
		return nil
	}
}

// Act implements [world.Actor].
func (c *statefulSets) Act(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	set, ok := c.Store.Object(&appsv1.StatefulSet{}, key).(*appsv1.StatefulSet)
	if !ok {
		return 0, nil
	}
	s := c.sync(set)
	if set.DeletionTimestamp == nil {
		if err := s.process(ctx); err != nil {
			return 0, err
		}
	}
	return s.again, s.writeStatus(ctx)
}

// setSync is one look at a StatefulSet.
type setSync struct {
	*statefulSets

	set *appsv1.StatefulSet
	// current and update are the names of its revisions.
	current, update string
	// replicas are the Pods by ordinal, nil where there is none; condemned those that
	// are too many, the highest ordinal first.
	replicas, condemned []*corev1.Pod
	again               time.Duration
}

func (c *statefulSets) sync(set *appsv1.StatefulSet) *setSync {
	s := &setSync{statefulSets: c, set: set, update: c.revisionOf(set), current: set.Status.CurrentRevision}
	if _, known := c.templates[s.current]; !known {
		s.current = s.update
	}
	s.replicas = make([]*corev1.Pod, max(0, *set.Spec.Replicas))
	for _, pod := range c.podsOf(set) {
		ordinal := ordinalOf(set, pod)
		switch place := ordinal - s.start(); {
		case ordinal < 0:
		case place >= 0 && place < len(s.replicas):
			s.replicas[place] = pod
		default:
			s.condemned = append(s.condemned, pod)
		}
	}
	slices.SortFunc(s.condemned, func(a, b *corev1.Pod) int { return ordinalOf(set, b) - ordinalOf(set, a) })
	s.wakeForAvailability()
	return s
}

func ordinalOf(set *appsv1.StatefulSet, pod *corev1.Pod) int {
	suffix, ok := strings.CutPrefix(pod.Name, set.Name+"-")
	ordinal, err := strconv.Atoi(suffix)
	if !ok || err != nil {
		return -1
	}
	return ordinal
}

// revisionOf names the revision of the template. The same template has the same name,
// and one that was read from a cluster has the name that it has there.
func (c *statefulSets) revisionOf(set *appsv1.StatefulSet) string {
	digest := fingerprint(&set.Spec.Template)
	name, seen := c.seen[seenTemplate{set.UID, digest}]
	if !seen {
		name = set.Name + "-" + digest
	}
	c.templates[name] = set.Spec.Template
	return name
}

// fingerprint identifies a Pod template.
func fingerprint(template *corev1.PodTemplateSpec) string {
	raw, err := json.Marshal(template)
	if err != nil {
		return "unknown"
	}
	h := fnv.New32a()
	_, _ = h.Write(raw)
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// wakeForAvailability looks again when a Pod that is ready becomes available.
func (s *setSync) wakeForAvailability() {
	for _, pod := range slices.Concat(s.replicas, s.condemned) {
		if rest, ready := availableIn(pod, s.set.Spec.MinReadySeconds, s.Now); ready && rest > 0 && (s.again == 0 || rest < s.again) {
			s.again = rest
		}
	}
}

// process creates what is missing, takes away what is too much, and then updates.
func (s *setSync) process(ctx context.Context) error {
	monotonic := s.set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	for i := range s.replicas {
		stop, err := s.processReplica(ctx, i, monotonic)
		if stop || err != nil {
			return err
		}
	}
	first := s.firstUnavailable()
	for _, pod := range s.condemned {
		stop, err := s.processCondemned(ctx, pod, first, monotonic)
		if stop || err != nil {
			return err
		}
	}
	switch {
	case s.set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType:
		return nil
	case !s.Server.MaxUnavailable:
		return s.updateOne(ctx)
	default:
		return s.updatePods(ctx)
	}
}

// processReplica creates a Pod that is missing. Where Pods are made in order, it
// stops at the first that is not available.
func (s *setSync) processReplica(ctx context.Context, i int, monotonic bool) (stop bool, err error) {
	pod := s.replicas[i]
	switch {
	case pod == nil:
		return monotonic, s.create(ctx, i+s.start())
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return true, s.Remove(ctx, pod)
	case !monotonic:
		return false, nil
	default:
		return !isAvailable(pod, s.set.Spec.MinReadySeconds, s.Now), nil
	}
}

// processCondemned deletes a Pod that is too much.
func (s *setSync) processCondemned(ctx context.Context, pod, first *corev1.Pod, monotonic bool) (stop bool, err error) {
	if pod.DeletionTimestamp != nil {
		return monotonic, nil
	}
	if monotonic && pod != first && !isAvailable(pod, s.set.Spec.MinReadySeconds, s.Now) {
		return true, nil
	}
	return monotonic, s.Remove(ctx, pod)
}

func (s *setSync) firstUnavailable() *corev1.Pod {
	for _, pod := range s.replicas {
		if pod != nil && !isAvailable(pod, s.set.Spec.MinReadySeconds, s.Now) {
			return pod
		}
	}
	for _, pod := range slices.Backward(s.condemned) {
		if !isAvailable(pod, s.set.Spec.MinReadySeconds, s.Now) {
			return pod
		}
	}
	return nil
}

// updatePods deletes Pods of an old revision, from the highest ordinal down to the
// partition, as many as may be unavailable.
func (s *setSync) updatePods(ctx context.Context) error {
	partition, most := 0, 1
	if rolling := s.set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		partition, most = max(0, int(ptr.Deref(rolling.Partition, 0))), maxUnavailable(rolling.MaxUnavailable, len(s.replicas))
	}
	budget := most - s.unavailable()
	parallel := s.set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement
	for i := len(s.replicas) - 1; i >= partition; i-- {
		pod := s.replicas[i]
		if pod == nil || record.RevisionOf(pod) == s.update || pod.DeletionTimestamp != nil {
			continue
		}
		free := parallel && !isAvailable(pod, s.set.Spec.MinReadySeconds, s.Now)
		if !free && budget <= 0 {
			continue
		}
		if !free {
			budget--
		}
		if err := s.Remove(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// updateOne is what a version does that knows no maxUnavailable: it deletes the highest
// Pod of an old revision, once all above it are available.
func (s *setSync) updateOne(ctx context.Context) error {
	partition := 0
	if rolling := s.set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		partition = max(0, int(ptr.Deref(rolling.Partition, 0)))
	}
	for i := len(s.replicas) - 1; i >= partition; i-- {
		pod := s.replicas[i]
		if pod != nil && record.RevisionOf(pod) != s.update && pod.DeletionTimestamp == nil {
			return s.Remove(ctx, pod)
		}
		if pod == nil || !isAvailable(pod, s.set.Spec.MinReadySeconds, s.Now) {
			return nil
		}
	}
	return nil
}

func (s *setSync) unavailable() int {
	n := 0
	for _, pod := range s.replicas {
		if pod == nil || !isAvailable(pod, s.set.Spec.MinReadySeconds, s.Now) {
			n++
		}
	}
	return n
}

func maxUnavailable(value *intstr.IntOrString, replicas int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(value, intstr.FromInt32(1)), replicas, false)
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// create makes the Pod of an ordinal, below the partition at the current revision.
func (s *setSync) create(ctx context.Context, ordinal int) error {
	revision := s.update
	if rolling := s.set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && ordinal < s.start()+int(ptr.Deref(rolling.Partition, 0)) {
		revision = s.current
	}
	pod := podFrom(s.templates[revision], s.set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	pod.Name = fmt.Sprintf("%s-%d", s.set.Name, ordinal)
	pod.Labels[appsv1.StatefulSetRevisionLabel] = revision
	pod.Labels[appsv1.StatefulSetPodNameLabel] = pod.Name
	if err := s.claim(ctx, pod); err != nil {
		return err
	}
	return s.Store.Create(ctx, pod)
}

// claim makes the PersistentVolumeClaims of a Pod that do not exist. They are bound: what
// has run may have left data there.
func (s *setSync) claim(ctx context.Context, pod *corev1.Pod) error {
	for i := range s.set.Spec.VolumeClaimTemplates {
		t := &s.set.Spec.VolumeClaimTemplates[i]
		claim := &corev1.PersistentVolumeClaim{Spec: *t.Spec.DeepCopy()}
		claim.Namespace, claim.Name, claim.Labels = pod.Namespace, t.Name+"-"+pod.Name, s.set.Spec.Selector.MatchLabels
		claim.Spec.VolumeName = "simulated-" + claim.Name
		if s.Store.Object(claim, client.ObjectKeyFromObject(claim)) != nil {
			continue
		}
		if err := s.Store.Create(ctx, claim); err != nil {
			return fmt.Errorf("create PersistentVolumeClaim %s: %w", claim.Name, err)
		}
	}
	return nil
}

func (s *setSync) start() int {
	if s.set.Spec.Ordinals == nil {
		return 0
	}
	return int(s.set.Spec.Ordinals.Start)
}

// podFrom is a Pod made from a template for its owner.
func podFrom(template corev1.PodTemplateSpec, owner client.Object, kind schema.GroupVersionKind) *corev1.Pod {
	template = *template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace = owner.GetNamespace()
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	return pod
}

// writeStatus writes what the controller has seen, if it differs.
func (s *setSync) writeStatus(ctx context.Context) error {
	set := s.set.DeepCopy()
	status := appsv1.StatefulSetStatus{
		ObservedGeneration: set.Generation, CurrentRevision: s.current, UpdateRevision: s.update,
		CollisionCount: new(int32), Conditions: set.Status.Conditions,
	}
	for _, pod := range s.podsOf(set) {
		s.count(&status, pod)
	}
	isAdvanced := s.Server.Advances || set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType
	if wanted := *set.Spec.Replicas; isAdvanced && status.UpdatedReplicas == wanted && status.ReadyReplicas == wanted && status.Replicas == wanted {
		status.CurrentRevision, status.CurrentReplicas = s.update, status.UpdatedReplicas
	}
	set.Status = status
	return s.WriteStatus(ctx, set)
}

// podsOf are the Pods that a StatefulSet controls.
func (c *statefulSets) podsOf(set *appsv1.StatefulSet) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, obj := range c.Store.Indexed(&corev1.Pod{}, world.OwnerIndex, string(set.UID)) {
		if pod, ok := obj.(*corev1.Pod); ok {
			pods = append(pods, pod)
		}
	}
	return pods
}

func (s *setSync) count(status *appsv1.StatefulSetStatus, pod *corev1.Pod) {
	status.Replicas++
	if isReady(pod) {
		status.ReadyReplicas++
	}
	if isAvailable(pod, s.set.Spec.MinReadySeconds, s.Now) {
		status.AvailableReplicas++
	}
	if pod.DeletionTimestamp != nil {
		return
	}
	if record.RevisionOf(pod) == s.current {
		status.CurrentReplicas++
	}
	if record.RevisionOf(pod) == s.update {
		status.UpdatedReplicas++
	}
}
