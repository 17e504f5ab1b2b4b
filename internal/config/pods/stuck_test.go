package pods_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/config/pods"
)

// Only a Pod that was never ready at an earlier revision, and for which the StatefulSet waits, is
// stuck.
func TestStuck(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	started := now.Add(-time.Minute)
	yes, three, one := true, int32(3), int32(1)
	set := func() *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "set"}}
		s.Spec.Replicas, s.Spec.Selector = &three, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
		s.Status.UpdateRevision = "new"
		return s
	}
	pod := func(name, revision string, ready bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: "pod", ResourceVersion: "7", CreationTimestamp: metav1.NewTime(started), Labels: map[string]string{"app": "db", appsv1.StatefulSetRevisionLabel: revision},
			OwnerReferences: []metav1.OwnerReference{{UID: "set", Controller: &yes}},
		}}
		start, status := metav1.NewTime(started), corev1.ConditionFalse
		if ready {
			status = corev1.ConditionTrue
		}
		p.Spec.NodeName, p.Status.Phase, p.Status.StartTime = "node", corev1.PodRunning, &start
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: start}}
		return p
	}
	crashes := func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	}
	for name, test := range map[string]struct {
		change func(s *appsv1.StatefulSet, of []*corev1.Pod) []*corev1.Pod
		stuck  bool
		at     time.Time
	}{
		"a Pod crashes": {stuck: true},
		"it pulls an image that does not exist": {stuck: true, change: func(_ *appsv1.StatefulSet, of []*corev1.Pod) []*corev1.Pod {
			of[2].Status.ContainerStatuses[0].State.Waiting.Reason = "ImagePullBackOff"
			return of
		}},
		"it is not ready yet": {stuck: true, at: started.Add(5 * time.Minute), change: func(_ *appsv1.StatefulSet, of []*corev1.Pod) []*corev1.Pod {
			of[2].Status.ContainerStatuses = nil
			return of
		}},
		"it was not scheduled": {stuck: true, at: started.Add(5 * time.Minute), change: func(_ *appsv1.StatefulSet, of []*corev1.Pod) []*corev1.Pod {
			of[2].Spec.NodeName, of[2].Status = "", corev1.PodStatus{Phase: corev1.PodPending}
			return of
		}},
		"its kubelet has said nothing yet": {change: func(_ *appsv1.StatefulSet, of []*corev1.Pod) []*corev1.Pod {
			of[2].Status = corev1.PodStatus{Phase: corev1.PodPending}
			return of
		}},
		"it was ready": {change: func(_ *appsv1.StatefulSet, of []*corev1.Pod) []*corev1.Pod {
			of[2].Status.Conditions[0].LastTransitionTime = metav1.NewTime(started.Add(2 * time.Second))
			return of
		}},
		"when it started is not known": {change: func(_ *appsv1.StatefulSet, of []*corev1.Pod) []*corev1.Pod {
			of[2].Status.StartTime = nil
			return of
		}},
		"it is at the present revision": {change: func(s *appsv1.StatefulSet, of []*corev1.Pod) []*corev1.Pod {
			s.Status.UpdateRevision = "bad"
			return of
		}},
		"the partition keeps it": {change: func(s *appsv1.StatefulSet, of []*corev1.Pod) []*corev1.Pod {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &three}
			return of
		}},
		"it is being deleted": {change: func(_ *appsv1.StatefulSet, of []*corev1.Pod) []*corev1.Pod {
			of[2].DeletionTimestamp = &metav1.Time{Time: now}
			return of
		}},
		"it was evicted": {change: func(_ *appsv1.StatefulSet, of []*corev1.Pod) []*corev1.Pod {
			of[2].Status.Phase = corev1.PodFailed
			return of
		}},
		"an earlier Pod is not ready": {change: func(_ *appsv1.StatefulSet, of []*corev1.Pod) []*corev1.Pod {
			return []*corev1.Pod{of[0], pod("db-1", "new", false), of[2]}
		}},
		"an earlier Pod does not exist": {change: func(_ *appsv1.StatefulSet, of []*corev1.Pod) []*corev1.Pod { return []*corev1.Pod{of[0], of[2]} }},
		"it is beyond the replicas": {change: func(s *appsv1.StatefulSet, of []*corev1.Pod) []*corev1.Pod {
			s.Spec.Replicas = &one
			return of
		}},
		"it belongs to another workload": {change: func(_ *appsv1.StatefulSet, of []*corev1.Pod) []*corev1.Pod {
			of[2].OwnerReferences[0].UID = "other"
			return of
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, of := set(), []*corev1.Pod{pod("db-0", "good", true), pod("db-1", "good", true), pod("db-2", "bad", false)}
			crashes(of[2])
			if test.change != nil {
				of = test.change(s, of)
			}
			stuck := pods.Pods{Items: of}.StuckOf(s, now)
			if (stuck != nil) != test.stuck {
				t.Fatalf("stuck is %+v", stuck)
			}
			if stuck != nil && (stuck.Name != "db-2" || stuck.UID != "pod" || stuck.Version != "7" || stuck.Revision != "bad" || !stuck.At.Equal(test.at)) {
				t.Errorf("stuck is %+v", stuck)
			}
		})
	}
}
