package config_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// faultWorld has one of everything that the ring writes: first hashes, releases,
// a Pod to free, a baseline, a condition, a clean-up, and rolls.
func faultWorld(w *world) {
	w.configMap("app", "a", "1")
	w.secret("db", "p", "1")
	w.secret("init", "p", "1")
	hash := wantHash(w.t, values{"app": {"a": "1"}}, nil)
	wider := envFrom(configMapRef("app")) + "\ninitContainers: [{name: i, image: x, envFrom: [{secretRef: {name: init}}]}]"
	w.apply(
		deployment("plain", envFrom(configMapRef("app"), secretRef("init"))), // one change each, so that once is once
		workload("StatefulSet", "set", envFrom(secretRef("db"))),
		workload("DaemonSet", "daemon", envFrom(configMapRef("app"))),
		withHash(deployment("adopted", wider), hash),
		deployment("missing", envFrom(configMapRef("later"))),
		replaceOnce(deployment("suspended", envFrom(configMapRef("app")), "wave.pusher.com/scheduling-disabled", "default-scheduler"),
			"    spec:\n      ", "    spec:\n      schedulerName: "+waveScheduler+"\n      "),
		withHash(deployment("old", envFrom(configMapRef("app"))), hash),
		onlyOurs(gated(workload("StatefulSet", "gated", envFrom(configMapRef("app"))))),
	)
	w.eventually(func() error { return want(1, len(w.pods("gated"))) }) // so that there is a Pod to free
	old := w.deploymentNow("old")
	owned := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"old","uid":%q}]}}`, old.UID)
	w.patch(&corev1.ConfigMap{}, "app", owned)
	w.patch(&corev1.Secret{}, "init", owned)
	w.patch(old, "old", `{"metadata":{"finalizers":["wave.pusher.com/finalizer"]}}`)
}

// changeFaultWorld is what the user does next.
func changeFaultWorld(w *world) {
	w.patch(&corev1.ConfigMap{}, "app", `{"data":{"a":"2"}}`)
	w.patch(&corev1.Secret{}, "db", `{"stringData":{"p":"2"}}`)
	w.configMap("later", "a", "1")
}

// end is the state that must result whatever fails before: for each workload
// its hash and all else that the ring writes, without times.
func (w *world) end() map[string]string {
	w.t.Helper()
	state := map[string]string{}
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}} {
		if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			w.t.Fatal(err)
		}
		switch l := list.(type) {
		case *appsv1.DeploymentList:
			for i := range l.Items {
				describe(state, &l.Items[i], &l.Items[i].Spec.Template)
			}
		case *appsv1.StatefulSetList:
			for i := range l.Items {
				describe(state, &l.Items[i], &l.Items[i].Spec.Template)
			}
		case *appsv1.DaemonSetList:
			for i := range l.Items {
				describe(state, &l.Items[i], &l.Items[i].Spec.Template)
			}
		}
	}
	app := &corev1.ConfigMap{}
	if err := w.get(app, "app"); err != nil {
		w.t.Fatal(err)
	}
	state["owners of app"] = fmt.Sprint(len(app.OwnerReferences))
	return state
}

func describe(state map[string]string, obj client.Object, template *corev1.PodTemplateSpec) {
	annotations := slices.Sorted(maps.Keys(obj.GetAnnotations()))
	annotations = slices.DeleteFunc(annotations, func(a string) bool { return a == "deployment.kubernetes.io/revision" })
	state[obj.GetName()] = fmt.Sprintln(template.Annotations[waveHash], template.Spec.SchedulerName, obj.GetFinalizers(), annotations)
}

// run is one run of the story on a world of its own.
type run struct {
	*world
	witness *witness
}

func newRun(t *testing.T) *run {
	t.Helper()
	w := newWorld(t)
	w.options.CoalesceWindow = 0
	faultWorld(w)
	return &run{world: w, witness: watchTemplates(w)}
}

// managed starts a manager on a transport, and returns how to stop it.
func (r *run) managed(inj *fault.Injector) (stop func()) {
	r.t.Helper()
	return r.managedWith(inj)
}

// converges waits for a state.
func (r *run) converges(to map[string]string) {
	r.t.Helper()
	r.eventually(func() error {
		if got := r.end(); !maps.Equal(got, to) {
			return fmt.Errorf("got %v, want %v", got, to)
		}
		return nil
	})
}

// TestFaultTheManagerStopsAtEveryWrite tells the story by managers that stop. The end must be that without a fault, and
// no Pod template may have been changed more often.
func TestFaultTheManagerStopsAtEveryWrite(t *testing.T) {
	reference := newReference(t)
	testenv.AtEveryWrite(t, reference.writes/2, func(t *testing.T, begin fault.Begin) {
		r := newRun(t)
		r.tell(reference, begin(r.managed)) // whenever one stops, another starts
	})
}

// TestFaultTwoManagersParallel has two managers that know nothing of each other.
func TestFaultTwoManagersParallel(t *testing.T) {
	reference := newReference(t)
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			r := newRun(t)
			r.managed(fault.New())
			r.managed(fault.New())
			r.tell(reference, func() {})
		})
	}
}

// TestFaultConflicts refuses every other write.
func TestFaultConflicts(t *testing.T) {
	reference := newReference(t)
	r, inj := newRun(t), fault.New()
	n := 0
	inj.Conflict(func(fault.Request) bool { n++; return n%2 == 1 })
	r.managed(inj)
	r.tell(reference, func() {})
}

// TestFaultCachesLag lets the change be made while the caches see nothing.
func TestFaultCachesLag(t *testing.T) {
	reference := newReference(t)
	r, inj := newRun(t), fault.New()
	r.managed(inj)
	r.converges(reference.first)
	release := inj.HoldWatches()
	changeFaultWorld(r.world)
	r.patch(&appsv1.Deployment{}, "plain", `{"spec":{"replicas":2}}`) // its generation is another now
	release()
	r.converges(reference.last)
	r.witness.check(reference.changes)
}

// TestFaultTheAPIServerGoesAway cuts the connection in the middle.
func TestFaultTheAPIServerGoesAway(t *testing.T) {
	reference := newReference(t)
	r, inj := newRun(t), fault.New()
	r.managed(inj)
	r.converges(reference.first)
	inj.Cut()
	changeFaultWorld(r.world)
	inj.Restore()
	r.converges(reference.last)
	r.witness.check(reference.changes)
}

// reference is what the story comes to without a fault.
type reference struct {
	first, last map[string]string
	writes      int
	changes     map[string]int
}

var theReference = struct {
	sync.Mutex
	*reference
}{}

// newReference tells the story without a fault, once for all tests.
func newReference(t *testing.T) *reference {
	t.Helper()
	theReference.Lock()
	defer theReference.Unlock()
	if theReference.reference != nil {
		return theReference.reference
	}
	ref := &reference{}
	t.Run("without a fault", func(t *testing.T) {
		w := newWorldNow(t)
		w.options.CoalesceWindow = 0
		faultWorld(w)
		r, inj := &run{world: w, witness: watchTemplates(w)}, fault.New()
		r.managed(inj)
		r.restsAt(&ref.first, "missing")
		changeFaultWorld(w)
		r.restsAt(&ref.last, "")
		ref.writes, ref.changes = len(inj.Writes()), r.witness.changes()
	})
	theReference.reference = ref
	return ref
}

// restsAt waits until all workloads but one have the hash of the present config
// and nothing is left to clean up, and notes that state.
func (r *run) restsAt(state *map[string]string, but string) {
	r.t.Helper()
	set := &appsv1.StatefulSet{}
	r.eventually(func() error {
		for _, name := range []string{"plain", "adopted", "suspended", "old", "missing"} {
			if e := r.explain(name); name != but && e.State != "UpToDate" && e.State != "Rolling" {
				return fmt.Errorf("%s: %s", name, e.Sentence)
			}
		}
		*state = r.end()
		if but != "" && r.condition(but) == "" {
			return fmt.Errorf("%s has no condition yet", but)
		}
		if err := r.get(set, "gated"); err != nil || set.Annotations[native+"suspended"] != "" {
			return fmt.Errorf("gated is not free yet: %w", err)
		}
		if r.deploymentNow("old").Finalizers != nil {
			return fmt.Errorf("the finalizer still exists")
		}
		if but != "" && r.adopted("adopted").Scope == "" {
			return fmt.Errorf("no baseline yet")
		}
		return nil
	})
	*state = r.end()
}

// tell tells the story to its end and checks it; meanwhile is called all along.
func (r *run) tell(ref *reference, meanwhile func()) {
	r.t.Helper()
	for _, chapter := range []struct {
		do func(*world)
		to map[string]string
	}{{func(*world) {}, ref.first}, {changeFaultWorld, ref.last}} {
		chapter.do(r.world)
		r.eventually(func() error {
			meanwhile()
			if got := r.end(); !maps.Equal(got, chapter.to) {
				return fmt.Errorf("got %v, want %v", got, chapter.to)
			}
			return nil
		})
	}
	r.witness.check(ref.changes)
}

// witness sees every change of a Pod template's hash and scheduler, on a watch
// of its own.
type witness struct {
	w    *world
	mu   sync.Mutex
	seen map[string][]string
}

func watchTemplates(w *world) *witness {
	w.t.Helper()
	wit := &witness{w: w, seen: map[string][]string{}}
	c, err := testenv.Shared().Clientset()
	if err != nil {
		w.t.Fatal(err)
	}
	watch, err := c.AppsV1().Deployments(w.namespace).Watch(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(watch.Stop)
	go func() {
		for e := range watch.ResultChan() {
			if d, ok := e.Object.(*appsv1.Deployment); ok {
				wit.see(d)
			}
		}
	}()
	return wit
}

func (wit *witness) see(d *appsv1.Deployment) {
	wit.mu.Lock()
	defer wit.mu.Unlock()
	now := d.Spec.Template.Annotations[waveHash] + " " + d.Spec.Template.Spec.SchedulerName
	if seen := wit.seen[d.Name]; len(seen) == 0 || seen[len(seen)-1] != now {
		wit.seen[d.Name] = append(seen, now)
	}
}

// changes is how often each Pod template was changed.
func (wit *witness) changes() map[string]int {
	wit.mu.Lock()
	defer wit.mu.Unlock()
	n := map[string]int{}
	for name, seen := range wit.seen {
		n[name] = len(seen) - 1
	}
	return n
}

// check fails if a Pod template was changed more often than it should have been:
// a workload was rolled twice. A sentinel that was rolled last proves that the
// witness has seen all before it.
func (wit *witness) check(want map[string]int) {
	wit.w.t.Helper()
	wit.w.patch(&appsv1.Deployment{}, "missing", `{"spec":{"template":{"spec":{"schedulerName":"last"}}}}`)
	wit.w.eventually(func() error {
		wit.mu.Lock()
		defer wit.mu.Unlock()
		if seen := wit.seen["missing"]; len(seen) == 0 || seen[len(seen)-1][len(seen[len(seen)-1])-4:] != "last" {
			return fmt.Errorf("the witness has not seen the last change")
		}
		return nil
	})
	got := wit.changes()
	got["missing"]-- // the change just made
	for name, n := range want {
		if got[name] > n {
			wit.w.t.Errorf("%s was changed %d times, not %d: %v", name, got[name], n, wit.seen[name])
		}
	}
}
