package decision

import (
	"encoding/json"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/replica"
)

// SetOf is what matters of a StatefulSet and of its Pods.
func SetOf(s *appsv1.StatefulSet, pods []corev1.Pod) Set {
	set := Set{
		Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion,
		Generation: s.Generation, ObservedGeneration: s.Status.ObservedGeneration,
		Deleting: s.DeletionTimestamp != nil, Replicas: replica.Count(s), FirstOrdinal: replica.FirstOrdinal(s),
		Strategy:        string(s.Spec.UpdateStrategy.Type),
		Lent:            vocabulary.LentStrategy.Get(s.Annotations) != "",
		MaxUnavailable:  1,
		Grace:           GraceOf(s),
		Ordered:         s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement,
		MinReady:        time.Duration(s.Spec.MinReadySeconds) * time.Second,
		CurrentRevision: s.Status.CurrentRevision, UpdateRevision: s.Status.UpdateRevision,
		Settings: SettingsOf(s.Name, s.Annotations), Writer: writerOf(s),
	}
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		set.Partition, set.MaxUnavailable = partitionOf(rolling), unavailableOf(rolling, set.Replicas)
	}
	for i := range pods {
		if ordinal := replica.Ordinal(s.Name, pods[i].Name); ordinal >= 0 {
			set.Pods = append(set.Pods, PodOf(&pods[i], ordinal))
		}
	}
	return set
}

// writerOf is the field manager that wrote the Pod template last, empty if that is not known. Spillway has one entry for
// the hash of the config and for what it writes beside the template, so that its time says nothing; the last roll does.
func writerOf(s *appsv1.StatefulSet) string {
	if len(s.ManagedFields) == 0 { // as a cache has it, in each pass
		return ""
	}
	isOurs := func(e metav1.ManagedFieldsEntry) bool { return e.Manager == kube.FieldOwner }
	at, by := kube.LastWrite(&metav1.ObjectMeta{
		CreationTimestamp: s.CreationTimestamp, ManagedFields: slices.DeleteFunc(slices.Clone(s.ManagedFields), isOurs),
	}, templateField)
	var roll struct {
		At time.Time `json:"at"`
	}
	_ = json.Unmarshal([]byte(vocabulary.ConfigChange.Get(s.Annotations)), &roll) // what is no record is none
	_, last := kube.LastWrite(s, templateField)
	switch rolled := roll.At.Truncate(time.Second); { // as exact as managedFields
	case rolled.After(at):
		return kube.FieldOwner
	case rolled.Equal(at), roll.At.IsZero() && last == kube.FieldOwner:
		return ""
	default:
		return by
	}
}

// templateField is the name of the field of the Pod template.
const templateField = "template"

// GraceOf is how long the Pods of a StatefulSet have to terminate.
func GraceOf(s *appsv1.StatefulSet) time.Duration {
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if set := s.Spec.Template.Spec.TerminationGracePeriodSeconds; set != nil {
		grace = *set
	}
	return time.Duration(grace) * time.Second
}

// partitionOf is the partition as the controller understands it: counted from
// the first ordinal there is.
func partitionOf(r *appsv1.RollingUpdateStatefulSetStrategy) int {
	if r.Partition == nil {
		return 0
	}
	return int(*r.Partition)
}

// unavailableOf is maxUnavailable as the controller understands it: a percentage is
// rounded down, and what comes to nothing is 1.
func unavailableOf(r *appsv1.RollingUpdateStatefulSetStrategy, replicas int) int {
	limit, err := limitOf(r.MaxUnavailable)
	if err != nil || !limit.Set {
		return 1
	}
	return limit.Of(replicas)
}

// PodOf is what matters of a Pod.
func PodOf(p *corev1.Pod, ordinal int) Pod {
	pod := Pod{
		Name: p.Name, Ordinal: ordinal, UID: p.UID, ResourceVersion: p.ResourceVersion,
		Revision: p.Labels[appsv1.StatefulSetRevisionLabel], Created: p.CreationTimestamp.Time,
		Terminating: p.DeletionTimestamp != nil,
	}
	pod.Since, pod.Ready = replica.ReadySince(p)
	if pod.Ready {
		return pod
	}
	pod.NeverReady = health.NeverReady(p)
	waits := health.Waits(p)
	if i := slices.IndexFunc(waits, health.IsBroken); i >= 0 {
		pod.Reason, pod.Broken = waits[i], true
	} else {
		pod.Reason = unreadyReason(p, waits)
	}
	return pod
}

// unreadyReason is the most telling word for why a Pod is not ready: what a
// container waits for, why it was not scheduled, what its condition says, and
// at last its phase.
func unreadyReason(p *corev1.Pod, waits []string) string {
	if len(waits) > 0 {
		return waits[0]
	}
	if c := conditionOf(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse && c.Reason != "" {
		return c.Reason
	}
	if c := conditionOf(p, corev1.PodReady); c != nil && c.Reason != "" {
		return c.Reason
	}
	if p.Status.Reason != "" || p.Status.Phase == corev1.PodRunning {
		return p.Status.Reason
	}
	return string(p.Status.Phase)
}

func conditionOf(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}
