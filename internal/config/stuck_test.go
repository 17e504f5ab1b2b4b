package config_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

const stuckPods = native + "stuck-pods"

// orderly is a StatefulSet of three Pods that uses the Secret db, and replaces them in order.
func orderly(annotations ...string) string {
	return replaceOnce(still(workload("StatefulSet", "db", envFrom(secretRef("db")), annotations...)), "replicas: 1", "replicas: 3")
}

// uids are those of the Pods of an app, by name.
func (w *world) uids(app string) map[string]types.UID {
	w.t.Helper()
	uids := map[string]types.UID{}
	for _, p := range w.live(app) {
		uids[p.Name] = p.UID
	}
	return uids
}

// serves waits until three Pods of the StatefulSet are ready at its present revision.
func (w *world) serves() {
	w.t.Helper()
	w.eventually(func() error {
		set := &appsv1.StatefulSet{}
		if err := w.get(set, "db"); err != nil {
			return err
		}
		s := set.Status
		if s.ObservedGeneration != set.Generation || s.ReadyReplicas != 3 || s.UpdatedReplicas != 3 {
			return fmt.Errorf("its status is %+v", s)
		}
		return nil
	})
}

// waits waits until the last Pod of the StatefulSet is not ready at another revision than the
// present one.
func (w *world) waits() corev1.Pod {
	w.t.Helper()
	var last corev1.Pod
	w.eventually(func() error {
		set := &appsv1.StatefulSet{}
		if err := errors.Join(w.get(set, "db"), w.get(&last, "db-2")); err != nil {
			return err
		}
		if set.Status.ObservedGeneration != set.Generation || last.Labels[appsv1.StatefulSetRevisionLabel] == set.Status.UpdateRevision || isReady(&last) || last.Status.StartTime == nil {
			return fmt.Errorf("db-2 is %v, %+v", last.Labels, last.Status)
		}
		return nil
	})
	return last
}

// aSet is a world in which the StatefulSet is ready with the first value.
func aSet(w *world, annotations ...string) (*kubelets, *fault.Injector) {
	w.t.Helper()
	k, inj := startKubelets(w), fault.New()
	w.options.CoalesceWindow = 0
	w.secret("db", "p", "good")
	w.apply(orderly(annotations...))
	stop := w.managedBy(fault.New())
	w.eventually(func() error { return want(true, w.template("StatefulSet", "db").Annotations[waveHash] != "") })
	w.serves()
	stop()
	return k, inj
}

// A StatefulSet that is stuck at a revision which the ring has rolled recovers when the config is
// corrected, or the template: its Pod, which was never ready, is deleted, and no other one.
func TestAStuckStatefulSetRecovers(t *testing.T) {
	for name, correct := range map[string]func(w *world, before *corev1.PodTemplateSpec){
		"the config": func(w *world, _ *corev1.PodTemplateSpec) { w.secret("db", "p", "good2") },
		"the template": func(w *world, before *corev1.PodTemplateSpec) {
			w.undo("StatefulSet", "db", before)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			pinnable(w)
			_, inj := aSet(w, native+"pin-config", "true")
			w.managedBy(inj)
			before, uids := w.template("StatefulSet", "db").DeepCopy(), w.uids("db")
			w.secret("db", "p", "bad")
			w.eventually(func() error { return want("Failed", string(w.explainKind("StatefulSet", "db").State)) })
			correct(w, before)
			w.eventually(func() error { return want(1, len(w.events("StuckPodReplaced"))) })
			w.serves()
			if deleted := deletions(inj); !slices.Equal(deleted, []string{"db-2"}) {
				t.Errorf("the manager has deleted %v", deleted)
			}
			now := w.uids("db")
			if name != "the config" && (now["db-0"] != uids["db-0"] || now["db-1"] != uids["db-1"]) {
				t.Error("a Pod that was ready was replaced")
			}
		})
	}
}

// A user may undo what was rolled before it is recorded that it has failed.
func TestAnUndoIsFasterThanTheRecordOfAFailure(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	_, inj := aSet(w, native+"pin-config", "true")
	w.managedBy(inj)
	before := w.template("StatefulSet", "db").DeepCopy()
	rolls := 0
	inj.Conflict(func(r fault.Request) bool { // the first one rolls, the others record
		if r.Verb != "patch" || r.Resource != "statefulsets" {
			return false
		}
		rolls++
		return rolls > 1
	})
	w.secret("db", "p", "bad")
	w.eventually(func() error { return w.isCrashing("db-2") })
	w.undo("StatefulSet", "db", before)
	inj.Conflict(nil)
	w.serves()
	if deleted := deletions(inj); !slices.Equal(deleted, []string{"db-2"}) {
		t.Errorf("the manager has deleted %v", deleted)
	}
}

// deletions are the Pods that a manager has deleted.
func deletions(inj *fault.Injector) []string {
	var names []string
	for _, r := range inj.Writes() {
		if r.Verb == "delete" && r.Resource == "pods" {
			names = append(names, r.Name)
		}
	}
	return names
}

// patchImage changes the Pod template as a user does.
func (w *world) patchImage(image string) {
	w.t.Helper()
	w.patch(&appsv1.StatefulSet{}, "db", fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":%q}]}}}}`, image))
}

// What a user has rolled is replaced only if the workload says so. A Pod that was ready is not
// deleted in any case.
func TestWhatAUserHasRolledIsStuck(t *testing.T) {
	for name, test := range map[string]struct {
		annotations []string
		replaced    bool
		spoil       func(w *world, p corev1.Pod)
	}{
		"without the annotation": {},
		"kept":                   {annotations: []string{stuckPods, "Keep"}},
		"not valid":              {annotations: []string{stuckPods, "Always"}},
		"replaced":               {annotations: []string{stuckPods, "Replace"}, replaced: true},
		"it was ready":           {annotations: []string{stuckPods, "Replace"}, spoil: wasReady},
		"paused":                 {annotations: []string{stuckPods, "Replace", native + "pause", "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			k, inj := aSet(w)
			w.apply(orderly(test.annotations...))
			k.breaks("db")
			w.patchImage("broken")
			w.eventually(func() error { return w.isCrashing("db-2") })
			k.breaks("")
			w.patchImage("good")
			last := w.waits()
			if test.spoil != nil {
				test.spoil(w, last)
			}
			w.managedBy(inj)
			if test.replaced {
				w.serves()
			}
			w.settled()
			if deleted := deletions(inj); (len(deleted) == 1) != test.replaced {
				t.Errorf("the manager has deleted %v", deleted)
			}
		})
	}
}

// isCrashing is nil once a Pod crashes.
func (w *world) isCrashing(name string) error {
	p := &corev1.Pod{}
	if err := w.get(p, name); err != nil {
		return err
	}
	s := p.Status.ContainerStatuses
	return want(true, len(s) > 0 && s[0].State.Waiting != nil)
}

// wasReady makes a Pod one that was ready for a while.
func wasReady(w *world, p corev1.Pod) {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady {
			c.LastTransitionTime = metav1.NewTime(p.Status.StartTime.Add(time.Minute))
		}
	}
	if err := w.client.Status().Update(w.t.Context(), &p); err != nil {
		w.t.Fatal(err)
	}
}

// A Pod that is not ready, and that nothing says is broken, gets time to become ready.
func TestAStuckPodMayRecover(t *testing.T) {
	w := newWorld(t)
	_, inj := aSet(w, stuckPods, "Replace")
	w.managedBy(inj)
	w.secret("db", "p", "hangs")
	w.eventually(func() error { // the last Pod has started with it
		p := &corev1.Pod{}
		if err := w.get(p, "db-2"); err != nil {
			return err
		}
		return want(true, p.Status.StartTime != nil && !isReady(p))
	})
	w.secret("db", "p", "good2")
	w.waits()
	w.eventually(func() error {
		e := w.explainKind("StatefulSet", "db")
		if e.Reason != "StuckPodMayRecover" || !strings.Contains(e.Sentence, "Pod db-2 was never ready at its earlier revision (not ready); it is replaced unless it is ready at ") || e.Until == nil {
			return fmt.Errorf("explain says %s: %s", e.Reason, e.Sentence)
		}
		return nil
	})
	if deleted := deletions(inj); len(deleted) > 0 {
		t.Errorf("the manager has deleted %v", deleted)
	}
	late := newRestOf(w)
	late.managedBy(inj)
	w.serves()
	if deleted := deletions(inj); !slices.Equal(deleted, []string{"db-2"}) {
		t.Errorf("the manager has deleted %v", deleted)
	}
}

// newRestOf is the same world ten minutes later.
func newRestOf(w *world) *world {
	later := *w
	later.options.Now = func() time.Time { return time.Now().Add(10 * time.Minute) }
	return &later
}

// tellStuck tells the story of a StatefulSet that recovers: its broken Pod is deleted once.
func tellStuck(w *world) {
	w.t.Helper()
	w.secret("db", "p", "bad")
	w.eventually(func() error { return w.isCrashing("db-2") })
	broken := w.uids("db")
	w.secret("db", "p", "good2")
	w.serves()
	if now := w.uids("db"); now["db-2"] == broken["db-2"] {
		w.t.Error("the broken Pod still exists")
	}
}

// TestFaultAStuckPod stops the manager at each write of the story, and starts another one.
func TestFaultAStuckPod(t *testing.T) {
	testenv.Story(t, 8, func(t *testing.T, begin fault.Begin) {
		w := newWorld(t)
		aSet(w)
		w.meanwhile = begin(w.managedBy)
		tellStuck(w)
	})
}

// TestFaultTwoManagersAndAStuckPod has two managers that know nothing of each other.
func TestFaultTwoManagersAndAStuckPod(t *testing.T) {
	w := newWorld(t)
	_, inj := aSet(w)
	w.managedBy(inj)
	w.managedBy(fault.New())
	tellStuck(w)
}
