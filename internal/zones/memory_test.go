package zones_test

import (
	"encoding/json"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/zones"
)

// Performance: rollout-operator caches every Pod of its namespace twice, and whole.
func TestMemoryOfManyPods(t *testing.T) {
	const pods, size = 3000, 20 << 10
	raw, err := json.Marshal(bigPod(size))
	if err != nil {
		t.Fatal(err)
	}
	whole := heapOf(t, raw, pods, func(obj any) (any, error) { return obj, nil })
	kept := heapOf(t, raw, pods, kube.Transform(podInterests()))
	t.Logf("%d Pods of %d KiB: %.1f MiB whole, %.1f MiB as the cache keeps them, 1/%.0f", pods, size>>10, whole, kept, whole/kept)
	if kept > whole/3 {
		t.Errorf("the cache keeps %.1f MiB of %.1f, want at most a third", kept, whole)
	}
}

// podInterests are those in Pods.
func podInterests() []kube.Interest {
	var found []kube.Interest
	for _, i := range zones.Interests() {
		if reflect.TypeOf(i.Object) == reflect.TypeFor[*corev1.Pod]() {
			found = append(found, i)
		}
	}
	return found
}

// heapOf is the live heap, in MiB, of so many Pods once they are in a cache.
func heapOf(t *testing.T, raw []byte, pods int, transform func(any) (any, error)) float64 {
	t.Helper()
	before, held := liveHeap(), make([]any, pods)
	for i := range held {
		pod := &corev1.Pod{}
		if err := json.Unmarshal(raw, pod); err != nil {
			t.Fatal(err)
		}
		pod.Name, pod.UID = "zone-a-"+strconv.Itoa(i), types.UID("pod-"+strconv.Itoa(i))
		obj, err := transform(pod)
		if err != nil {
			t.Fatal(err)
		}
		held[i] = obj
	}
	after := liveHeap()
	runtime.KeepAlive(held)
	return (after - before) / (1 << 20)
}

func liveHeap() float64 {
	runtime.GC()
	runtime.GC()
	m := runtime.MemStats{}
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// bigPod is one of a StatefulSet, whose manifest is so big.
func bigPod(size int) *corev1.Pod {
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "mimir", Labels: map[string]string{appsv1.StatefulSetRevisionLabel: "ingester-zone-a-6c9b", "name": "ingester-zone-a"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "ingester-zone-a", UID: "a", Controller: &yes}},
	}}
	for i := range 40 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: "c" + strconv.Itoa(i), Image: "grafana/mimir", Args: []string{strings.Repeat("-flag=value ", size/40/12)},
		})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: "c" + strconv.Itoa(i), Ready: true})
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return pod
}
