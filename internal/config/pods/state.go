package pods

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// CrashWindow is how long a container must run before its earlier crashes count no more.
// The kubelet forgets them after the same time.
const CrashWindow = 10 * time.Minute

// State is how the Pods of a workload do. The zero value is that of one whose Pods
// were not asked for.
type State struct {
	// Readable is true if the Pods were read. Otherwise Unknown says why they are not
	// known yet; if it is empty, they must not be read.
	Readable bool
	Unknown  string
	// Of is how many Pods the workload has, New how many of them have its present hash.
	// Terminating ones do not count.
	Of, New int
	// Started is how many of the new ones were scheduled, and Unschedulable how many fit on no node.
	Started, Unschedulable int
	// Ready is how many of the new ones are ready, and FirstReady since when one is, zero if none is.
	Ready      int
	FirstReady time.Time
	// LastStart is when the last of them started or stopped being ready, zero if none has.
	LastStart time.Time
	// Failing is how many of the new ones cannot run, and Reason what most of them wait for.
	Failing int
	Reason  string
	// ReadySince is since when all Pods with the present hash are ready, zero if one is
	// not, or there are none.
	ReadySince time.Time
	// Stuck is the Pod for which a StatefulSet waits in vain, nil if there is none, or if that
	// was not asked for.
	Stuck *Stuck
}

// Cause is how many Pods fail, and why: "3 of 3 Pods CrashLoopBackOff".
func (s *State) Cause() string {
	return fmt.Sprintf("%d of %d Pods %s", s.Failing, s.Of, s.Reason)
}

// Of is the state of the Pods of a workload, of which the Pod template has this hash, among
// those of its namespace.
func (p Pods) Of(workload client.Object, hash string, now time.Time) State {
	if p.Forbidden || p.Unknown != "" {
		return State{Unknown: p.Unknown}
	}
	s, reasons := State{Readable: true}, map[string]int{}
	selector := selectorOf(workload)
	for _, pod := range p.Items {
		if !isOf(workload, selector, pod) || pod.DeletionTimestamp != nil || IsOver(pod) {
			continue
		}
		s.Of++
		if vocabulary.ConfigHash.Get(pod.Annotations) != hash {
			continue
		}
		s.add(pod, reasons, now)
	}
	if s.Failing > 0 {
		s.Reason = slices.MaxFunc(sorted(reasons), func(a, b string) int { return cmp.Compare(reasons[a], reasons[b]) })
	}
	return s
}

// add counts a Pod with the present hash.
func (s *State) add(pod *corev1.Pod, reasons map[string]int, now time.Time) {
	s.New++
	switch {
	case pod.Spec.NodeName != "":
		s.Started++
	case isUnschedulable(pod):
		s.Unschedulable++
	}
	if reason := failure(pod, now); reason != "" {
		s.Failing++
		reasons[reason]++
	}
	since, ready := readySince(pod)
	if ready {
		s.Ready++
		if s.FirstReady.IsZero() || since.Before(s.FirstReady) {
			s.FirstReady = since
		}
	}
	if at := pod.Status.StartTime; at != nil {
		started := at.Time
		if !ready && !health.NeverReady(pod) { // it gets as much time as one that starts
			started = since
		}
		if started.After(s.LastStart) {
			s.LastStart = started
		}
	}
	switch {
	case !ready || s.New > 1 && s.ReadySince.IsZero():
		s.ReadySince = time.Time{}
	case since.After(s.ReadySince):
		s.ReadySince = since
	}
}

func sorted(reasons map[string]int) []string {
	names := make([]string, 0, len(reasons))
	for name := range reasons {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// failures are what a container waits for that its config may be the cause of. That an
// image cannot be pulled is none of them.
var failures = []string{"CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "RunContainerError"}

// failure is why a Pod cannot run, empty if it may.
func failure(pod *corev1.Pod, now time.Time) string {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && slices.Contains(failures, w.Reason) {
			return w.Reason
		}
		if crashesAgain(&c, now) {
			return failures[0]
		}
	}
	return ""
}

// crashesAgain is true of a container that runs for a moment between two crashes.
func crashesAgain(c *corev1.ContainerStatus, now time.Time) bool {
	last := c.LastTerminationState.Terminated
	return c.RestartCount > 1 && last != nil && last.ExitCode != 0 && now.Before(last.FinishedAt.Add(CrashWindow))
}

func isUnschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// IsOver is true of a Pod that runs no more, such as one that was evicted.
func IsOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func readySince(pod *corev1.Pod) (time.Time, bool) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}

// isOf is true if the workload's controller manages the Pod. Between a Deployment and its
// Pods are ReplicaSets, which have its name as their prefix.
func isOf(workload client.Object, selector labels.Selector, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || !selector.Matches(labels.Set(pod.Labels)) {
		return false
	}
	if _, ok := workload.(*appsv1.Deployment); ok {
		return owner.Kind == "ReplicaSet" && strings.HasPrefix(owner.Name, workload.GetName()+"-")
	}
	return owner.UID == workload.GetUID()
}

func selectorOf(workload client.Object) labels.Selector {
	var of *metav1.LabelSelector
	switch o := workload.(type) {
	case *appsv1.Deployment:
		of = o.Spec.Selector
	case *appsv1.StatefulSet:
		of = o.Spec.Selector
	case *appsv1.DaemonSet:
		of = o.Spec.Selector
	}
	selector, err := metav1.LabelSelectorAsSelector(of)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}
