package config

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Each precondition guards against one change by another client between our read
// and our write. Without it the test of its name fails.
func TestPreconditions(t *testing.T) {
	for name, test := range map[string]struct {
		prepare   func(*appsv1.Deployment)
		meanwhile func(*stage)
	}{
		"generation: the template that was hashed is another now": {meanwhile: func(s *stage) {
			s.patch(&appsv1.Deployment{}, "web", `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"y"}]}}}}`)
		}},
		"uid: the workload was recreated": {meanwhile: func(s *stage) {
			s.remove(&appsv1.Deployment{}, "web")
			s.create(web(s.namespace))
		}},
		"generation: a user has released it": {
			prepare: func(d *appsv1.Deployment) { d.Spec.Template.Spec.SchedulerName = vocabulary.SuspendedScheduler },
			meanwhile: func(s *stage) {
				s.patch(&appsv1.Deployment{}, "web", `{"spec":{"template":{"spec":{"schedulerName":"mine"}}}}`)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			d := web(s.namespace)
			if test.prepare != nil {
				test.prepare(d)
			}
			s.create(d)
			plan := s.plan()
			if len(plan.Writes) != 1 {
				t.Fatalf("%d writes are planned, want 1", len(plan.Writes))
			}
			test.meanwhile(s)
			s.mustConflict(plan)
		})
	}
}

// A DaemonSet's generation, other than a Deployment's, stays the same when its
// annotations change, so opting out needs a precondition of its own.
func TestPreconditionOfTheOptIn(t *testing.T) {
	s := newStage(t)
	like := web(s.namespace)
	ds := &appsv1.DaemonSet{ObjectMeta: like.ObjectMeta, Spec: appsv1.DaemonSetSpec{Selector: like.Spec.Selector, Template: like.Spec.Template}}
	s.create(ds)
	plan := s.plan()
	s.patch(&appsv1.DaemonSet{}, "web", fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, vocabulary.ConfigTracked.Aliases[0]))
	for _, out := range act(t.Context(), s.client, plan.Writes) {
		if !ring.IsConflict(out.Err) {
			t.Errorf("the write was not refused: %v", out.Err)
		}
	}
}

// The clean-up of old installs removes what was observed, where it was observed.
func TestPreconditionsOfTheCleanUp(t *testing.T) {
	for name, meanwhile := range map[string]func(s *stage){
		"owner reference: another is in its place": func(s *stage) {
			other := web(s.namespace)
			other.Name = "other"
			s.create(other)
			s.own(other)
		},
		"finalizer: another is in its place": func(s *stage) {
			s.patch(&corev1.ConfigMap{}, "app", `{"metadata":{"ownerReferences":null}}`)
			s.patch(&appsv1.Deployment{}, "web", `{"metadata":{"finalizers":["example.test/other"]}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: s.namespace}})
			d := web(s.namespace)
			d.Finalizers, d.Annotations = []string{vocabulary.ConfigFinalizer}, nil // not tracked: only the clean-up is due
			s.create(d)
			if name[0] == 'o' {
				s.own(d)
			}
			plan := s.plan()
			meanwhile(s)
			s.mustConflict(plan)
			s.patch(&appsv1.Deployment{}, "web", `{"metadata":{"finalizers":null}}`)
		})
	}
}

func web(namespace string) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: namespace,
			Annotations: map[string]string{vocabulary.ConfigTracked.Aliases[0]: "true", "example.test/note": "kept"},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}},
			},
		},
	}
}

// stage is a namespace in which a test observes, plans and acts step by step.
type stage struct {
	t         *testing.T
	client    client.Client
	namespace string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	t.Parallel()
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &stage{t, c, testenv.Namespace(t)}
}

// plan observes and plans.
func (s *stage) plan() decision.Plan {
	s.t.Helper()
	options := Options{Now: time.Now, Namespaces: []string{s.namespace}}
	o := newObserver(options, s.client, content.Source{Digests: content.Digesting(s.client), Values: s.client})
	observed, err := o.observe(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return decision.Decide(observed, options.Options)
}

// mustConflict acts on a plan that no longer holds: nothing may change.
func (s *stage) mustConflict(plan decision.Plan) {
	s.t.Helper()
	before := s.now()
	for _, out := range act(s.t.Context(), s.client, plan.Writes) {
		if !ring.IsConflict(out.Err) {
			s.t.Errorf("the write was not refused: %v", out.Err)
		}
	}
	if diff := cmp.Diff(before, s.now()); diff != "" {
		s.t.Errorf("the write did something:\n%s", diff)
	}
}

// now is what a write could change: spec and metadata, without the changes by the
// controllers of Kubernetes.
func (s *stage) now() []any {
	s.t.Helper()
	d := &appsv1.Deployment{}
	if err := s.client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "web"}, d); err != nil {
		s.t.Fatal(err)
	}
	delete(d.Annotations, "deployment.kubernetes.io/revision")
	return []any{d.Spec, d.Annotations, d.Finalizers}
}

// own makes a Deployment the one owner of the ConfigMap.
func (s *stage) own(d *appsv1.Deployment) {
	s.t.Helper()
	s.patch(&corev1.ConfigMap{}, "app", fmt.Sprintf(
		`{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":%q,"uid":%q}]}}`, d.Name, d.UID))
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
