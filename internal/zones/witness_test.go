package zones_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// witness sees everything that happens in a namespace, on watches of its own, and
// in the end tells it again in the order in which it happened: the resource
// versions of all kinds are one sequence. At each Pod that went it checks the
// rules of the ring against what was true in that very moment.
//
// Whatever no human did counts as ours, also what the controller of a StatefulSet
// does to a zone that we have opened.
type witness struct {
	t         *testing.T
	cp        *controlplane.ControlPlane
	client    client.WithWatch
	namespace string

	mu     sync.Mutex
	seen   map[string]happening
	latest map[types.UID]string
	humans map[types.UID]bool
	// allowed is how many Pods of a zone may be down, 1 if it does not exist.
	allowed map[string]int
}

// happening is one change of one object.
type happening struct {
	version uint64
	kind    watch.EventType
	object  client.Object
}

func newWitness(t *testing.T, cp *controlplane.ControlPlane, namespace string) *witness {
	t.Helper()
	plain := newClient(t, cp)
	c, err := client.NewWithWatch(cp.Config(), client.Options{Scheme: plain.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{
		t: t, cp: cp, client: c, namespace: namespace,
		seen: map[string]happening{}, latest: map[types.UID]string{}, humans: map[types.UID]bool{}, allowed: map[string]int{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	for _, list := range witnessed() {
		version, err := w.list(ctx, list)
		if err != nil {
			t.Fatal(err)
		}
		go w.follow(ctx, list, version)
	}
	return w
}

func witnessed() []client.ObjectList {
	return []client.ObjectList{&corev1.PodList{}, &appsv1.StatefulSetList{}, &v1alpha1.RolloutGroupList{}}
}

// lister watches one kind for a retrying watcher.
type lister struct {
	*witness
	list client.ObjectList
}

// WatchWithContext implements [cache.WatcherWithContext].
func (l lister) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	list, _ := l.list.DeepCopyObject().(client.ObjectList)
	return l.client.Watch(ctx, list, client.InNamespace(l.namespace), &client.ListOptions{Raw: &options})
}

// list notes what there is, and returns how new that is. What does not exist any
// more has gone.
func (w *witness) list(ctx context.Context, list client.ObjectList) (version string, err error) {
	if err := w.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
		return "", err
	}
	objects, err := apimeta.ExtractList(list)
	if err != nil {
		return "", err
	}
	there := map[types.UID]bool{}
	for _, object := range objects {
		if obj, ok := object.(client.Object); ok {
			there[obj.GetUID()] = true
			w.note(watch.Modified, obj, obj.GetResourceVersion())
		}
	}
	for _, h := range w.lasting(objects) {
		if !there[h.object.GetUID()] {
			w.note(watch.Deleted, h.object, list.GetResourceVersion())
		}
	}
	return list.GetResourceVersion(), nil
}

// lasting are the objects of the kind of these that existed last.
func (w *witness) lasting(like []runtime.Object) (lasting []happening) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.seen {
		_, lasts := w.latest[h.object.GetUID()]
		if lasts && len(like) > 0 && reflect.TypeOf(h.object) == reflect.TypeOf(like[0]) {
			lasting = append(lasting, h)
		}
	}
	return lasting
}

// follow watches one kind; where the API server has forgotten what was, after a
// restart, it begins with what is.
func (w *witness) follow(ctx context.Context, list client.ObjectList, version string) {
	for ctx.Err() == nil {
		watcher, err := watchtools.NewRetryWatcherWithContext(ctx, version, lister{w, list})
		if err != nil {
			return
		}
		for e := range watcher.ResultChan() {
			if obj, ok := e.Object.(client.Object); ok {
				w.note(e.Type, obj, obj.GetResourceVersion())
			}
		}
		_ = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			next, err := w.list(ctx, list)
			if err == nil {
				version = next
			}
			return err == nil, nil
		})
	}
}

func (w *witness) note(kind watch.EventType, obj client.Object, at string) {
	version, err := strconv.ParseUint(at, 10, 64)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[fmt.Sprintf("%d %s", version, obj.GetUID())] = happening{version, kind, obj}
	w.latest[obj.GetUID()] = at
	if kind == watch.Deleted {
		delete(w.latest, obj.GetUID())
	}
}

// human notes that a person is about to delete a Pod.
func (w *witness) human(pod types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.humans[pod] = true
}

// allow says how many Pods of a zone may be down.
func (w *witness) allow(zone string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.allowed[zone] = n
}

// testify waits until the witness has seen all that is, and tells what was wrong.
func (w *witness) testify() *testimony {
	w.t.Helper()
	testenv.Eventually(w.t, func(ctx context.Context) error { return w.isUpToDate(ctx) })
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &testimony{witness: w, pods: map[types.UID]*corev1.Pod{}, sets: map[string]*appsv1.StatefulSet{}, downSince: map[types.UID]uint64{}, opened: map[string]uint64{}}
	all := slices.SortedFunc(maps.Values(w.seen), func(a, b happening) int { return cmp.Compare(a.version, b.version) })
	for i := range all {
		t.tell(&all[i])
	}
	for _, broken := range t.broken {
		w.t.Error(broken)
	}
	return t
}

func (w *witness) isUpToDate(ctx context.Context) error {
	for _, list := range witnessed() {
		if err := w.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		switch l := list.(type) {
		case *corev1.PodList:
			for i := range l.Items {
				if err := w.has(&l.Items[i]); err != nil {
					return err
				}
			}
		case *appsv1.StatefulSetList:
			for i := range l.Items {
				if err := w.has(&l.Items[i]); err != nil {
					return err
				}
			}
		case *v1alpha1.RolloutGroupList:
			for i := range l.Items {
				if err := w.has(&l.Items[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (w *witness) has(obj client.Object) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := w.latest[obj.GetUID()]; got != obj.GetResourceVersion() {
		return fmt.Errorf("the witness has seen %s at %q, not at %s", obj.GetName(), got, obj.GetResourceVersion())
	}
	return nil
}

// testimony is the state of the world while it is reported, and what was wrong.
type testimony struct {
	*witness
	pods map[types.UID]*corev1.Pod
	sets map[string]*appsv1.StatefulSet
	// downSince is when a Pod ceased to be available other than by us.
	downSince map[types.UID]uint64
	// known is how new the view was from which the last move was permitted.
	known uint64
	// opened is what was known when a zone was opened for its controller, which
	// goes on by what it knows itself until the zone is held again.
	opened map[string]uint64
	// taker is the zone of the Pod that is being judged.
	taker  string
	broken []string
	// order are the zones in the order in which their Pods were taken, each once
	// in a row; gone are the Pods that we took, in order.
	order, gone []string
	// most is how many Pods of a zone were down at most once one of ours had gone;
	// rests are how long the newest ready Pod had been so when one of ours went.
	most  int
	rests []time.Duration
}

func (t *testimony) tell(h *happening) {
	switch obj := h.object.(type) {
	case *v1alpha1.RolloutGroup:
		if obj.Status.Seen != nil {
			t.known, _ = strconv.ParseUint(obj.Status.Seen.Pods, 10, 64)
		}
	case *appsv1.StatefulSet:
		if before := t.sets[obj.Name]; isOpen(obj) && (before == nil || !isOpen(before)) {
			t.opened[obj.Name] = t.known
		}
		t.sets[obj.Name] = obj
		if h.kind == watch.Deleted {
			delete(t.sets, obj.Name)
		}
	case *corev1.Pod:
		t.tellPod(h, obj)
	}
}

func (t *testimony) tellPod(h *happening, pod *corev1.Pod) {
	before := t.pods[pod.UID]
	goes := before != nil && before.DeletionTimestamp == nil && (h.kind == watch.Deleted || pod.DeletionTimestamp != nil)
	ours := goes && !t.humans[pod.UID] && !t.isSurplus(before) && !isKubelet(h, pod)
	if ours {
		t.check(h, before)
	}
	if before != nil && isReady(before) && !ours && (!isReady(pod) || h.kind == watch.Deleted) {
		t.downSince[pod.UID] = h.version
	}
	if h.kind == watch.Deleted {
		delete(t.pods, pod.UID)
		return
	}
	t.pods[pod.UID] = pod
}

// isKubelet is true if kwok has deleted a Pod: it does so by name alone, and with
// no grace, and may hit the namesake that came after the one that it meant.
func isKubelet(h *happening, pod *corev1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	return h.kind == watch.Deleted && pod.DeletionTimestamp == nil || grace != nil && *grace == 0
}

func zoneName(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return owner.Name
	}
	return ""
}

// isSurplus is true of Pods that go because their zone has fewer replicas, or is
// going itself.
func (t *testimony) isSurplus(pod *corev1.Pod) bool {
	set := t.sets[zoneName(pod)]
	if set == nil || set.DeletionTimestamp != nil {
		return true
	}
	ordinal, err := strconv.Atoi(strings.TrimPrefix(pod.Name, set.Name+"-"))
	return err != nil || ordinal >= int(*set.Spec.Replicas)
}

// check checks the rules for a Pod that goes now.
func (t *testimony) check(h *happening, pod *corev1.Pod) {
	zone := zoneName(pod)
	t.taker = zone
	t.rests = append(t.rests, t.rest(h))
	t.gone = append(t.gone, pod.Name)
	if len(t.order) == 0 || t.order[len(t.order)-1] != zone {
		t.order = append(t.order, zone)
	}
	if !isReady(pod) {
		return // this takes nothing away
	}
	allowed := max(1, t.allowed[zone])
	t.most = max(t.most, t.down(zone)+1)
	if down := t.down(zone); down+1 > allowed {
		t.complainf(h, "%s was taken while %d of %s were down, of at most %d", pod.Name, down, zone, allowed)
	}
	group := t.sets[zone].Labels["rollout-group"]
	for name, set := range t.sets {
		if name != zone && set.Labels["rollout-group"] == group && t.down(name) > 0 {
			t.complainf(h, "%s was taken while %d of %s were down", pod.Name, t.down(name), name)
		}
	}
	for _, other := range t.pods {
		set := t.sets[zoneName(other)]
		if set != nil && set.Name == zone && other.DeletionTimestamp == nil && !isReady(other) && !t.isExcused(other) &&
			other.Labels[appsv1.StatefulSetRevisionLabel] != set.Status.UpdateRevision && !t.isSurplus(other) {
			t.complainf(h, "%s, which was ready, was taken while %s, which was not, could have been", pod.Name, other.Name)
		}
	}
}

// rest is how long the Pod that became ready last has been so.
func (t *testimony) rest(h *happening) time.Duration {
	var newest time.Time
	for _, p := range t.pods {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && isReady(p) && c.LastTransitionTime.After(newest) {
				newest = c.LastTransitionTime.Time
			}
		}
	}
	gone := h.object.GetDeletionTimestamp()
	if grace := h.object.GetDeletionGracePeriodSeconds(); gone != nil && grace != nil {
		return gone.Sub(newest) - time.Duration(*grace)*time.Second
	}
	return 0
}

// down is how many replicas of a zone no Pod serves, apart from those of which
// the decision could not know.
func (t *testimony) down(zone string) int {
	set := t.sets[zone]
	if set == nil {
		return 0
	}
	down := int(*set.Spec.Replicas)
	excused := map[string]bool{}
	for uid, since := range t.downSince {
		if since > t.knew() {
			excused[t.nameOf(uid)] = true
		}
	}
	for _, p := range t.pods {
		if zoneName(p) == zone && !t.isSurplus(p) && isReady(p) {
			down--
		}
	}
	for name := range excused {
		if strings.HasPrefix(name, zone+"-") && !t.isUp(name) {
			down--
		}
	}
	return down
}

func (t *testimony) isUp(name string) bool {
	for _, p := range t.pods {
		if p.Name == name && isReady(p) {
			return true
		}
	}
	return false
}

func (t *testimony) isExcused(pod *corev1.Pod) bool { return t.downSince[pod.UID] > t.knew() }

// knew is how new the view was by which the Pod that is being judged was taken.
func (t *testimony) knew() uint64 {
	if set := t.sets[t.taker]; set != nil && isOpen(set) {
		return min(t.known, t.opened[t.taker])
	}
	return t.known
}

// isOpen is true of a set whose controller replaces Pods automatically.
func isOpen(set *appsv1.StatefulSet) bool {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	return set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType &&
		(rolling == nil || rolling.Partition == nil || *rolling.Partition < *set.Spec.Replicas)
}

// nameOf is the name of a Pod that may be gone.
func (t *testimony) nameOf(uid types.UID) string {
	for _, h := range t.seen {
		if h.object.GetUID() == uid {
			return h.object.GetName()
		}
	}
	return ""
}

func (t *testimony) complainf(h *happening, format string, args ...any) {
	t.broken = append(t.broken, fmt.Sprintf("at %d: ", h.version)+fmt.Sprintf(format, args...))
}
