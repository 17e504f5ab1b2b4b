package zones_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// observer sees every change of every Pod, by a watch of its own, and checks the
// rules at each instant.
type observer struct {
	mu sync.Mutex
	// changed wakes what waits for a change.
	changed *sync.Cond
	// sets has the Pods of each set, by name.
	sets map[string]map[string]*corev1.Pod
	// whole is, for each edit, when a zone became Ready with it.
	whole map[string]time.Time
	// expected is how many Pods a zone has; rules are checked only once it is set.
	expected int
	// limit is how many Pods of a zone may be down.
	limit int
	// worst is the most that were down in a zone, broken what broke a rule.
	worst  int
	broken []string
}

func observe(t *testing.T, namespace string) *observer {
	t.Helper()
	c, err := testenv.Shared().Clientset()
	if err != nil {
		t.Fatal(err)
	}
	// The API server drops a watch that it has no time for.
	pods := c.CoreV1().Pods(namespace)
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	w, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, podWatcher{pods})
	if err != nil {
		t.Fatal(err)
	}
	o := &observer{sets: map[string]map[string]*corev1.Pod{}, whole: map[string]time.Time{}}
	o.changed = sync.NewCond(&o.mu)
	go func() {
		for e := range w.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok {
				o.see(e.Type, p)
			}
		}
		if ctx.Err() == nil {
			t.Error("the observer has lost its watch")
		}
	}()
	return o
}

// podWatcher watches Pods for a watcher that tries again.
type podWatcher struct{ pods typed.PodInterface }

// WatchWithContext implements [cache.WatcherWithContext].
func (p podWatcher) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return p.pods.Watch(ctx, options)
}

// guard begins to check the rules for zones of n Pods, of which at most limit
// may be down.
func (o *observer) guard(n, limit int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expected, o.limit = n, limit
}

func (o *observer) see(event watch.EventType, p *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	set := setOf(p.Name)
	if o.sets[set] == nil {
		o.sets[set] = map[string]*corev1.Pod{}
	}
	o.sets[set][p.Name] = p
	if event == watch.Deleted {
		delete(o.sets[set], p.Name)
	}
	o.changed.Broadcast()
	if o.expected == 0 {
		return
	}
	if value := p.Annotations["edit"]; o.edited(set, value) == o.expected {
		if _, known := o.whole[set+" "+value]; !known {
			o.whole[set+" "+value] = time.Now()
		}
	}
	o.check(set)
}

// check notes what breaks a rule: two zones of a group that are down at the same time,
// or too many Pods of one.
func (o *observer) check(set string) {
	group := set[:strings.LastIndexByte(set, '-')]
	var down []string
	for _, zone := range theZones {
		if n := o.expected - o.serving(group+"-"+zone); n > 0 {
			down = append(down, zone)
			if o.worst = max(o.worst, n); n > o.limit {
				o.broken = append(o.broken, "too many down in "+group+"-"+zone)
			}
		}
	}
	if len(down) > 1 {
		o.broken = append(o.broken, "zones "+strings.Join(down, " and ")+" of "+group+" are down at the same time")
	}
}

// serving is how many Pods of a set are Ready, edited how many of them with an edit.
func (o *observer) serving(set string) int { return o.count(set, isReady) }

func (o *observer) edited(set, value string) int {
	return o.count(set, func(p *corev1.Pod) bool { return isReady(p) && p.Annotations["edit"] == value })
}

func (o *observer) count(set string, counts func(*corev1.Pod) bool) int {
	n := 0
	for _, p := range o.sets[set] {
		if counts(p) {
			n++
		}
	}
	return n
}

// ready is how many Pods are Ready with an edit.
func (o *observer) ready(value string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for set := range o.sets {
		n += o.edited(set, value)
	}
	return n
}

// await waits until a set has as many Pods that are Ready with an edit.
func (o *observer) await(set, value string, pods int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.edited(set, value) < pods {
		o.changed.Wait()
	}
}

// wholeAt is when a zone was Ready with an edit.
func (o *observer) wholeAt(set, value string) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.whole[set+" "+value]
}

// verdict fails the test if a rule was broken.
func (o *observer) verdict(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	slices.Sort(o.broken)
	for _, b := range slices.Compact(o.broken) {
		t.Error(b)
	}
}

func setOf(pod string) string { return pod[:strings.LastIndexByte(pod, '-')] }

func isReady(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
