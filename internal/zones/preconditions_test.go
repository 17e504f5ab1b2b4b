package zones

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

// Each precondition is for what another client may do between our read and our
// write. Without it the test of its name fails.
func TestPreconditions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		write     func(*stage) decision.Write
		meanwhile func(*stage)
	}{
		"the Pod is another than the one decided upon: it has become ready": {(*stage).delete, func(s *stage) {
			s.patch(&corev1.Pod{}, "zone-a-0", `{"metadata":{"labels":{"note":"changed"}}}`)
		}},
		"open: the StatefulSet is a namesake now": {(*stage).open, (*stage).recreateSet},
		"open: it has another template now":       {(*stage).open, (*stage).editSet},
		"lend: the StatefulSet is a namesake now": {(*stage).lend, (*stage).recreateSet},
		"lend: it has another template now":       {(*stage).lend, (*stage).editSet},
		"hold: the StatefulSet is a namesake now": {(*stage).hold, (*stage).recreateSet},
		"hold: another client has written it":     {(*stage).hold, (*stage).editSet},
		"hold when it is done: it is a namesake":  {(*stage).holdDone, (*stage).recreateSet},
		"hold when it is done: it is edited":      {(*stage).holdDone, (*stage).editTemplate},
		"advance: it has another revision now":    {(*stage).advance, (*stage).editSet},
	} {
		t.Run(name, func(t *testing.T) { isRefused(t, test.write, test.meanwhile) })
	}
}

// Defect 4: Pods were deleted by name alone, and a cache that was old killed the one
// that had come after the one that it meant.
func TestDefect4ANamesakeIsNotDeleted(t *testing.T) {
	t.Parallel()
	isRefused(t, (*stage).delete, func(s *stage) {
		s.remove(&corev1.Pod{}, "zone-a-0")
		s.create(aPod(s.namespace))
	})
}

// isRefused decides upon a write, and makes it after something has happened.
func isRefused(t *testing.T, decide func(*stage) decision.Write, meanwhile func(*stage)) {
	t.Helper()
	s := newStage(t)
	write := decide(s)
	meanwhile(s)
	before := s.now()
	if _, err := s.actor.apply(t.Context(), s.namespace, &write); !ring.IsConflict(err) {
		t.Errorf("the write was not refused: %v", err)
	}
	if diff := cmp.Diff(before, s.now()); diff != "" {
		t.Errorf("the write did something:\n%s", diff)
	}
}

// What permits is written by compare-and-swap, and what is removed is what was seen.
func TestPreconditionsOfTheGroup(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(*stage, *v1alpha1.RolloutGroup){
		"another client has permitted something": func(s *stage, g *v1alpha1.RolloutGroup) {
			other := g.DeepCopy()
			other.Status.Lock = &v1alpha1.Lock{Holder: "downscale/x", Purpose: v1alpha1.PurposeDownscale, Since: metav1.NewMicroTime(time.Now())}
			if err := s.client.Status().Update(s.t.Context(), other); err != nil {
				s.t.Fatal(err)
			}
		},
		"a user has paused it": func(s *stage, g *v1alpha1.RolloutGroup) {
			s.patch(&v1alpha1.RolloutGroup{}, g.Name, `{"spec":{"pause":{}}}`)
		},
		"it is a namesake now": func(s *stage, g *v1alpha1.RolloutGroup) {
			s.remove(&v1alpha1.RolloutGroup{}, g.Name)
			s.create(&v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: g.Name}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			seen, err := s.actor.create(t.Context(), types.NamespacedName{Namespace: s.namespace, Name: "ingester"})
			if err != nil {
				t.Fatal(err)
			}
			meanwhile(s, seen)
			if _, err := s.actor.persist(t.Context(), seen, &v1alpha1.RolloutGroupStatus{Phase: "Complete"}); !ring.IsConflict(err) {
				t.Errorf("the status was written: %v", err)
			}
			if err := s.actor.remove(t.Context(), seen); !ring.IsConflict(err) {
				t.Errorf("the group was deleted: %v", err)
			}
			if _, err := s.actor.create(t.Context(), client.ObjectKeyFromObject(seen)); !ring.IsConflict(err) {
				t.Errorf("the group was made twice: %v", err)
			}
		})
	}
}

// A delete and an opening that the network holds back find another resourceVersion than they
// name, once they were withdrawn; and a withdrawal that is late changes nothing.
func TestWhatIsWithdrawnIsNotDone(t *testing.T) {
	t.Parallel()
	for name, decide := range map[string]func(*stage) decision.Write{"a Pod is deleted": (*stage).delete, "a set is opened": (*stage).open} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			isRefused(t, decide, func(s *stage) {
				s.done(func(s *stage) decision.Write { w := decide(s); w.Act = decision.Fence; return w })
			})
			isRefused(t, func(s *stage) decision.Write { w := decide(s); w.Act = decision.Fence; return w }, func(s *stage) {
				if w := decide(s); w.Pod != "" {
					s.patch(&corev1.Pod{}, w.Pod, `{"metadata":{"labels":{"note":"changed"}}}`)
					return
				}
				s.editSet()
			})
		})
	}
}

// Hold, Open and Lend lead from each state to each other, and the API server
// accepts them.
func TestStrategies(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for i, step := range []struct {
		write func(*stage) decision.Write
		want  string
	}{
		{(*stage).hold, "RollingUpdate 2147483647 max 1"}, // the API server's default
		{(*stage).open, "RollingUpdate 0 max 2"},
		{(*stage).hold, "RollingUpdate 2147483647 max 2"},
		{(*stage).open, "RollingUpdate 0 max 2"},
		{(*stage).holdDone, "RollingUpdate 2147483647 max 2"},
		{(*stage).lend, "OnDelete lent"},
		{(*stage).hold, "RollingUpdate 2147483647 max 1"},
	} {
		s.done(step.write)
		if got := strategyText(s.set()); got != step.want {
			t.Errorf("after step %d it is %q, want %q", i, got, step.want)
		}
	}
}

func strategyText(set *appsv1.StatefulSet) string {
	text := string(set.Spec.UpdateStrategy.Type)
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil {
		text += fmt.Sprintf(" %d", *r.Partition)
		if r.MaxUnavailable != nil {
			text += " max " + r.MaxUnavailable.String()
		}
	}
	if _, _, lent := vocabulary.LentStrategy.Lookup(set.Annotations); lent {
		text += " lent"
	}
	return text
}

// The current revision is advanced where no controller does so. The controller of
// this version sets it back immediately, so it is watched.
func TestAdvance(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	sets, err := s.client.Watch(t.Context(), &appsv1.StatefulSetList{}, client.InNamespace(s.namespace))
	if err != nil {
		t.Fatal(err)
	}
	defer sets.Stop()
	s.done((*stage).advance)
	for e := range sets.ResultChan() {
		if set, ok := e.Object.(*appsv1.StatefulSet); ok && set.Status.CurrentRevision == "v2" {
			return
		}
	}
	t.Error("the current revision was not written")
}

// done makes a write; the controller of the set may be faster once or twice.
func (s *stage) done(write func(*stage) decision.Write) {
	s.t.Helper()
	testenv.Eventually(s.t, func(ctx context.Context) error {
		w := write(s)
		_, err := s.actor.apply(ctx, s.namespace, &w)
		return err
	})
}

// stage is a namespace with a StatefulSet and a Pod that no controller touches.
type stage struct {
	t         *testing.T
	client    client.WithWatch
	actor     actor
	namespace string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(kubernetes.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(testenv.Shared().Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, client: c, actor: actor{client: c, now: time.Now}, namespace: testenv.Namespace(t)}
	installKind(t, c)
	s.create(aSet(s.namespace))
	s.create(aPod(s.namespace))
	testenv.Eventually(t, func(context.Context) error { // until its controller leaves it alone
		if set := s.set(); set.Status.ObservedGeneration == 0 || set.Status.UpdateRevision == "" {
			return fmt.Errorf("not observed: %+v", set.Status)
		}
		return nil
	})
	return s
}

// installKind applies the kind RolloutGroup.
func installKind(t *testing.T, c client.Client) {
	t.Helper()
	raw, err := os.ReadFile("../../charts/spillway/generated/zones/spillway.dev_rolloutgroups.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &crd.Object); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("user"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func(ctx context.Context) error { return c.List(ctx, &v1alpha1.RolloutGroupList{}) })
}

func aSet(namespace string) *appsv1.StatefulSet {
	labels := map[string]string{"app": "zone-a"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "zone-a"}}
	set.Spec = appsv1.StatefulSetSpec{Replicas: new(int32), ServiceName: "x", Selector: &metav1.LabelSelector{MatchLabels: labels}}
	set.Spec.Template.Labels = labels
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "v1"}}
	return set
}

func aPod(namespace string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "zone-a-0"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "v1"}}, SchedulerName: "none",
			TerminationGracePeriodSeconds: new(int64),
		},
	}
}

func (s *stage) set() *appsv1.StatefulSet {
	s.t.Helper()
	set := &appsv1.StatefulSet{}
	if err := s.client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "zone-a"}, set); err != nil {
		s.t.Fatal(err)
	}
	return set
}

func (s *stage) write(act decision.Act) decision.Write {
	set := s.set()
	return decision.Write{Act: act, Zone: set.Name, UID: set.UID, ResourceVersion: set.ResourceVersion, MaxUnavailable: 2, Revision: "v2"}
}

func (s *stage) open() decision.Write { return s.write(decision.Open) }
func (s *stage) lend() decision.Write { return s.write(decision.Lend) }
func (s *stage) hold() decision.Write { return s.write(decision.Hold) }
func (s *stage) holdDone() decision.Write {
	w := s.write(decision.Hold)
	w.Generation = s.set().Generation
	return w
}

func (s *stage) advance() decision.Write { return s.write(decision.Advance) }

func (s *stage) delete() decision.Write {
	s.t.Helper()
	pod := &corev1.Pod{}
	if err := s.client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "zone-a-0"}, pod); err != nil {
		s.t.Fatal(err)
	}
	return decision.Write{Act: decision.Delete, Zone: "zone-a", Pod: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion}
}

func (s *stage) recreateSet() {
	s.remove(&appsv1.StatefulSet{}, "zone-a")
	s.create(aSet(s.namespace))
}

func (s *stage) editSet() {
	s.patch(&appsv1.StatefulSet{}, "zone-a", `{"metadata":{"labels":{"note":"changed"}}}`)
}

func (s *stage) editTemplate() {
	s.patch(&appsv1.StatefulSet{}, "zone-a", `{"spec":{"template":{"metadata":{"annotations":{"note":"changed"}}}}}`)
}

// now is what a write could change.
func (s *stage) now() []any {
	s.t.Helper()
	set := s.set()
	var pod corev1.Pod
	err := s.client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "zone-a-0"}, &pod)
	if err != nil {
		s.t.Fatal(err)
	}
	return []any{set.UID, set.Spec, set.Annotations, pod.UID, pod.DeletionTimestamp}
}

func (s *stage) create(obj client.Object) {
	s.t.Helper()
	if err := s.client.Create(s.t.Context(), obj); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) remove(obj client.Object, name string) {
	s.t.Helper()
	obj.SetNamespace(s.namespace)
	obj.SetName(name)
	if err := s.client.Delete(s.t.Context(), obj); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) patch(obj client.Object, name, patch string) {
	s.t.Helper()
	obj.SetNamespace(s.namespace)
	obj.SetName(name)
	if err := s.client.Patch(s.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		s.t.Fatal(err)
	}
}
