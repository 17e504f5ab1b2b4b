package pods

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var now = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)

// pod is a Pod of the Deployment web with the present hash, ready for an hour.
func pod(change ...func(*corev1.Pod)) *corev1.Pod {
	controller := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "web-1", Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"spillway.dev/config-hash": "new"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-5d9c7b", UID: "rs", Controller: &controller}},
	}}
	p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}}
	for _, c := range change {
		c(p)
	}
	return p
}

func waits(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		unready(p)
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
	}
}

// crashed runs again after some crashes, the last of them a while ago.
func crashed(times int32, ago time.Duration, code int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{RestartCount: times, LastTerminationState: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(now.Add(-ago))},
		}}}
	}
}

func unready(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

func started(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: now.Add(-time.Hour)} }

func readyFor(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-d)) }
}

func TestState(t *testing.T) {
	hourAgo := now.Add(-time.Hour)
	for name, test := range map[string]struct {
		pods []*corev1.Pod
		want State
	}{
		"none":                      {nil, State{}},
		"ready":                     {[]*corev1.Pod{pod(), pod(readyFor(time.Minute))}, State{Of: 2, New: 2, Started: 2, Ready: 2, FirstReady: hourAgo, ReadySince: now.Add(-time.Minute)}},
		"one is not ready":          {[]*corev1.Pod{pod(), pod(unready), pod()}, State{Of: 3, New: 3, Started: 3, Ready: 2, FirstReady: hourAgo}},
		"one was ready, and is not": {[]*corev1.Pod{pod(started, unready, readyFor(time.Minute))}, State{Of: 1, New: 1, Started: 1, LastStart: now.Add(-time.Minute)}},
		"one was never ready":       {[]*corev1.Pod{pod(started, unready)}, State{Of: 1, New: 1, Started: 1, LastStart: hourAgo}},
		"crashing": {
			[]*corev1.Pod{pod(waits("CrashLoopBackOff")), pod(waits("CrashLoopBackOff")), pod(waits("CreateContainerConfigError"))},
			State{Of: 3, New: 3, Started: 3, Failing: 3, Reason: "CrashLoopBackOff"},
		},
		"of an earlier hash": {
			[]*corev1.Pod{pod(waits("CrashLoopBackOff"), func(p *corev1.Pod) { p.Annotations = nil }), pod()}, State{Of: 2, New: 1, Started: 1, Ready: 1, FirstReady: hourAgo, ReadySince: hourAgo},
		},
		"an image cannot be pulled":       {[]*corev1.Pod{pod(waits("ImagePullBackOff"))}, State{Of: 1, New: 1, Started: 1}},
		"between two crashes":             {[]*corev1.Pod{pod(crashed(2, time.Minute, 1))}, State{Of: 1, New: 1, Started: 1, Failing: 1, Reason: "CrashLoopBackOff", Ready: 1, FirstReady: hourAgo, ReadySince: hourAgo}},
		"crashed once":                    {[]*corev1.Pod{pod(crashed(1, time.Minute, 1))}, State{Of: 1, New: 1, Started: 1, Ready: 1, FirstReady: hourAgo, ReadySince: hourAgo}},
		"crashed long ago":                {[]*corev1.Pod{pod(crashed(5, 10*time.Minute, 1))}, State{Of: 1, New: 1, Started: 1, Ready: 1, FirstReady: hourAgo, ReadySince: hourAgo}},
		"an init container that finished": {[]*corev1.Pod{pod(crashed(5, time.Minute, 0))}, State{Of: 1, New: 1, Started: 1, Ready: 1, FirstReady: hourAgo, ReadySince: hourAgo}},
		"not scheduled":                   {[]*corev1.Pod{pod(unready, func(p *corev1.Pod) { p.Spec.NodeName = "" })}, State{Of: 1, New: 1}},
		"fits on no node": {[]*corev1.Pod{pod(unready, func(p *corev1.Pod) {
			p.Spec.NodeName = ""
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable})
		})}, State{Of: 1, New: 1, Unschedulable: 1}},
		"terminating":          {[]*corev1.Pod{pod(waits("CrashLoopBackOff"), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} })}, State{}},
		"evicted":              {[]*corev1.Pod{pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })}, State{}},
		"of another workload":  {[]*corev1.Pod{pod(func(p *corev1.Pod) { p.OwnerReferences[0].Name = "api-5d9c7b" })}, State{}},
		"with other labels":    {[]*corev1.Pod{pod(func(p *corev1.Pod) { p.Labels = nil })}, State{}},
		"without a controller": {[]*corev1.Pod{pod(func(p *corev1.Pod) { p.OwnerReferences = nil })}, State{}},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.Readable = true
			web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
			var reduced []*corev1.Pod
			for _, p := range test.pods {
				r, err := reduce(p)
				if err != nil {
					t.Fatal(err)
				}
				reduced = append(reduced, r.(*corev1.Pod))
			}
			for _, among := range [][]*corev1.Pod{test.pods, reduced} {
				if diff := cmp.Diff(test.want, Pods{Items: among}.Of(web, "new", now)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Pods of StatefulSets and DaemonSets are theirs by UID.
func TestPodsAreOfTheirController(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	meta := metav1.ObjectMeta{Name: "web", UID: "rs"}
	for _, w := range []client.Object{
		&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector}}, &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector}},
	} {
		if s := (Pods{Items: []*corev1.Pod{pod()}}).Of(w, "new", now); s.New != 1 {
			t.Errorf("%T: %+v", w, s)
		}
		w.SetUID("another")
		if s := (Pods{Items: []*corev1.Pod{pod()}}).Of(w, "new", now); s.Of != 0 {
			t.Errorf("%T: %+v", w, s)
		}
	}
}

// Pods that are not known are not absent.
func TestUnknownPods(t *testing.T) {
	if s := (Pods{Unknown: "refused"}).Of(&appsv1.Deployment{}, "new", now); s != (State{Unknown: "refused"}) {
		t.Errorf("%+v", s)
	}
	if s := (Pods{Forbidden: true}).Of(&appsv1.Deployment{}, "new", now); s != (State{}) {
		t.Errorf("%+v", s)
	}
}
