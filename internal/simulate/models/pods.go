package models

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// kubelets run Pods: one is ready once its time has passed and all config exists
// that it cannot start without, unless it was seen to fail in a cluster; and gone as soon as it is deleted.
type kubelets struct {
	*world.World

	readiness world.Readiness
	stop      *time.Duration
	// lacking are the Pods that wait for config.
	lacking map[types.NamespacedName]bool
	// started is when their config came, by UID.
	started map[types.UID]time.Time
}

// Wakes implements [world.Actor].
func (k *kubelets) Wakes(_, after client.Object) []types.NamespacedName {
	switch o := after.(type) {
	case *corev1.Pod:
		return []types.NamespacedName{client.ObjectKeyFromObject(o)}
	case *corev1.ConfigMap, *corev1.Secret:
		return slices.Collect(maps.Keys(k.lacking))
	default:
		return nil
	}
}

// Act implements [world.Actor].
func (k *kubelets) Act(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	pod, ok := k.Store.Object(&corev1.Pod{}, key).(*corev1.Pod)
	lacked := k.lacking[key]
	delete(k.lacking, key)
	switch {
	case !ok:
		return 0, nil
	case pod.DeletionTimestamp != nil:
		return k.end(pod), nil
	case k.Faults[record.KeyOf("pod", pod.Namespace, pod.Name)] == world.Crashing:
		return 0, k.write(ctx, pod, func(p *corev1.Pod) { setCrashing(p, k.Now) })
	case pod.Status.Phase == corev1.PodRunning && !isReady(pod) && !isFailing(pod):
		return k.start(ctx, pod)
	case pod.Status.Phase != corev1.PodPending || isFailing(pod):
		return 0, nil
	}
	lacks, err := content.Lacks(ctx, k.Store, pod.Namespace, &pod.Spec)
	if err != nil {
		return 0, err
	}
	if len(lacks) > 0 {
		k.lacking[key] = true
		return 0, k.write(ctx, pod, waitingFor(lacks))
	}
	if lacked {
		k.started[pod.UID] = k.Now
	}
	return k.start(ctx, pod)
}

// end takes away a Pod that has stopped, and says how long that takes yet.
func (k *kubelets) end(pod *corev1.Pod) time.Duration {
	rest := pod.DeletionTimestamp.Add(Stopping(&pod.Spec, k.stop)).Sub(k.Now)
	if seen := pod.DeletionGracePeriodSeconds; seen != nil { // a cluster counts it in already
		rest -= time.Duration(*seen) * time.Second
	}
	if rest > 0 && pod.Status.Phase != corev1.PodPending {
		return rest
	}
	delete(k.Faults, record.KeyOf("pod", pod.Namespace, pod.Name)) // the next one of the name is another Pod
	k.Store.Remove(pod)
	return 0
}

// Stopping is how long a Pod takes until it is gone: as was said of all, or at
// most its grace period.
func Stopping(pod *corev1.PodSpec, said *time.Duration) time.Duration {
	switch {
	case said != nil:
		return *said
	case pod.TerminationGracePeriodSeconds != nil:
		return time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second
	default:
		return corev1.DefaultTerminationGracePeriodSeconds * time.Second
	}
}

// start makes a Pod that lacks nothing ready once its time has passed.
func (k *kubelets) start(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	kind, name := owning(pod)
	revision := func() world.Revision { return revisionOf(pod.Annotations, &pod.Spec) }
	takes := k.ReadyIn(k.readiness, kind, name, revision)
	if d, named := k.Said(k.readiness, "pod", pod.Name, revision); named {
		takes = d
	}
	if takes == world.Never || k.IsBroken(strings.ToLower(kind), pod.Namespace, name) || k.IsBroken("pod", pod.Namespace, pod.Name) {
		if pod.Status.Phase == corev1.PodRunning {
			return 0, nil
		}
		return 0, k.write(ctx, pod, func(p *corev1.Pod) { setReady(p, k.Now, false, "ContainersNotReady") })
	}
	began := pod.CreationTimestamp.Time
	if started, ok := k.started[pod.UID]; ok {
		began = started
	}
	if rest := began.Add(takes).Sub(k.Now); rest > 0 {
		return rest, nil
	}
	return 0, k.write(ctx, pod, func(p *corev1.Pod) { setReady(p, k.Now, true, "") })
}

// write writes the status of a Pod, if it differs.
func (k *kubelets) write(ctx context.Context, pod *corev1.Pod, change func(*corev1.Pod)) error {
	changed := pod.DeepCopy()
	change(changed)
	return k.WriteStatus(ctx, changed)
}

// waitingFor is the status of a Pod that cannot be started.
func waitingFor(lacks []string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: strings.Join(lacks, "; ")},
		}}}
	}
}

// setReady makes a Pod run, and ready or not.
func setReady(p *corev1.Pod, now time.Time, ready bool, reason string) {
	p.Status.Phase = corev1.PodRunning
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	p.Status.ContainerStatuses = nil
	p.Status.Conditions = nil
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		is := status
		if kind == corev1.PodInitialized {
			is = corev1.ConditionTrue
		}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: kind, Status: is, Reason: reason, LastTransitionTime: metav1.NewTime(now),
		})
	}
}

// setCrashing makes a Pod run whose container fails again and again.
func setCrashing(p *corev1.Pod, now time.Time) {
	if isFailing(p) {
		return
	}
	setReady(p, now, false, "ContainersNotReady")
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1, State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off restarting failed container"},
	}}}
}

// owning is the kind and the name of what a Pod belongs to: itself, if to nothing.
func owning(pod *corev1.Pod) (kind, name string) {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return owner.Kind, owner.Name
	}
	return "pod", pod.Name
}

func isAvailable(pod *corev1.Pod, minReadySeconds int32, now time.Time) bool {
	rest, ready := availableIn(pod, minReadySeconds, now)
	return ready && rest <= 0 && pod.DeletionTimestamp == nil
}

// availableIn is how long it takes until a Pod that is ready is available; zero or
// less if it is, and false if it is not ready.
func availableIn(pod *corev1.Pod, minReadySeconds int32, now time.Time) (time.Duration, bool) {
	if pod == nil || !isReady(pod) {
		return 0, false
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.LastTransitionTime.Add(time.Duration(minReadySeconds) * time.Second).Sub(now), true
		}
	}
	return 0, false
}

func isReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return pod.Status.Phase == corev1.PodRunning && c.Status == corev1.ConditionTrue
		}
	}
	return false
}
