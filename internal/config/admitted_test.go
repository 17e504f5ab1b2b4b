package config_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/admit"
	"github.com/spillway-dev/spillway/internal/config/pin"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
)

// register makes the ring's webhooks known for the namespace of the world.
func (w *world) register() {
	w.t.Helper()
	w.webhooks = testenv.RegisterWebhooks(w.t, w.namespace, admit.Declared(pin.Namespaces{}).Webhooks)
}

// admit starts a manager that answers the ring's webhooks.
func (w *world) admit() {
	w.t.Helper()
	w.register()
	w.serve()
}

// serve starts a manager, and waits until it is asked.
func (w *world) serve() {
	w.t.Helper()
	w.manage(func(o *manager.Options) { o.Admission = w.webhooks.Options })
	w.webhooks.WaitServed(w.t)
}

// update replaces a Deployment, retrying conflicts.
func (w *world) update(name string, change func(*appsv1.Deployment)) {
	w.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		d := w.deploymentNow(name)
		change(d)
		return w.client.Update(w.t.Context(), d)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// startedWith waits until the workload runs with what it should, and says how
// many Pods it took.
func (w *world) startedWith(name string, replicaSets, starts int, started func() int, hash string) {
	w.t.Helper()
	w.runs(name, 1, hash)
	w.settled()
	if got := w.replicaSets(name); got != replicaSets {
		w.t.Errorf("%s has had %d ReplicaSets, want %d", name, got, replicaSets)
	}
	if got := started(); got != starts {
		w.t.Errorf("%d Pods of %s have been started, want %d", got, name, starts)
	}
}

// The three cases that wave's authors wrote down, with admission.

func TestAdmittedCaseAEverythingIsThere(t *testing.T) {
	w := newWorld(t)
	w.admit()
	started := w.watchStarts("web")
	w.configMap("app", "a", "1")
	w.secret("db", "p", "q")
	w.apply(deployment("web", envFrom(configMapRef("app"), secretRef("db"))))
	w.startedWith("web", 1, 1, started, wantHash(t, values{"app": {"a": "1"}}, values{"db": {"p": "q"}}))
}

func TestAdmittedCaseBAnOptionalObjectAppearsLater(t *testing.T) {
	w := newWorld(t)
	w.admit()
	started := w.watchStarts("web")
	w.apply(deployment("web", envFrom("configMapRef: {name: later, optional: true}")))
	w.runs("web", 1, wantHash(t, nil, nil))
	w.configMap("later", "a", "1")
	w.startedWith("web", 2, 2, started, wantHash(t, values{"later": {"a": "1"}}, nil))
}

func TestAdmittedCaseCARequiredObjectIsMissing(t *testing.T) {
	w := newWorld(t)
	w.admit()
	started := w.watchStarts("web")
	w.apply(deployment("web", envFrom(configMapRef("app"), secretRef("db"))))
	w.eventually(func() error {
		pods := w.pods("web")
		if len(pods) != 1 {
			return want(1, len(pods))
		}
		c := pods[0].Status.Conditions
		if len(c) == 0 || c[0].Reason != corev1.PodReasonSchedulingGated {
			return fmt.Errorf("the Pod is not gated: %+v", pods[0].Status)
		}
		return nil
	})
	w.configMap("app", "a", "1")
	w.saysEventually("web", "Secret db not found; its Pods are not scheduled")
	w.secret("db", "p", "q")
	w.startedWith("web", 2, 1, started, wantHash(t, values{"app": {"a": "1"}}, values{"db": {"p": "q"}}))
}

// Defect 7 of wave, its first half: the config was edited, and then the workload,
// and it was rolled twice.
func TestDefect7ConfigAndWorkloadEditedTogether(t *testing.T) {
	w := newWorld(t)
	w.admit()
	const tries = 10
	for i := range tries {
		name := fmt.Sprintf("web-%d", i)
		w.configMap(name, "a", "1")
		w.apply(deployment(name, envFrom(configMapRef(name))))
		w.settledWith(name, 1)
	}
	for i := range tries {
		name := fmt.Sprintf("web-%d", i)
		w.configMap(name, "a", "2")
		w.patch(&appsv1.Deployment{}, name, `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"y","envFrom":[{"configMapRef":{"name":"`+name+`"}}]}]}}}}`)
	}
	w.settled()
	for i := range tries {
		w.settledWith(fmt.Sprintf("web-%d", i), 2)
	}
}

// A manifest that does not know the hash replaces the workload: nothing rolls.
func TestAReplaceKeepsTheHash(t *testing.T) {
	w := newWorld(t)
	w.admit()
	w.configMap("app", "a", "1")
	w.apply(deployment("web", envFrom(configMapRef("app"))))
	hash := w.hash("web")
	w.update("web", func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations = nil
		d.Labels = map[string]string{"release": "2"}
	})
	if got := w.hash("web"); got != hash {
		t.Errorf("the hash is %q, want %q", got, hash)
	}
	w.settled()
	w.settledWith("web", 1)
}

// An undo brings a revision back as it was; the config that goes with it is the
// present one, and a gate that it had is not wanted any more.
func TestAnUndoToASuspendedRevisionIsReleased(t *testing.T) {
	w := newWorld(t)
	w.admit()
	w.apply(deployment("web", envFrom(configMapRef("app"))))
	gatedTemplate := w.deploymentNow("web").Spec.Template
	w.configMap("app", "a", "1")
	hash := wantHash(t, values{"app": {"a": "1"}}, nil)
	w.runs("web", 1, hash)
	w.update("web", func(d *appsv1.Deployment) { d.Spec.Template = gatedTemplate })
	if gates := w.deploymentNow("web").Spec.Template.Spec.SchedulingGates; len(gates) > 0 {
		t.Errorf("it is suspended again: %v", gates)
	}
	w.runs("web", 1, hash)
}

func TestADryRunIsAnsweredAndChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.admit()
	w.configMap("app", "a", "1")
	d := &appsv1.Deployment{}
	decodeInto(t, d, deployment("web", envFrom(configMapRef("app"))))
	d.Namespace = w.namespace
	w.webhooks.WaitConfirmed(t) // what it writes automatically
	w.requests.take()
	if err := w.client.Create(t.Context(), d, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if got, want := d.Spec.Template.Annotations[waveHash], wantHash(t, values{"app": {"a": "1"}}, nil); got != want {
		t.Errorf("the answer has hash %q, want %q", got, want)
	}
	if writes := writesIn(w.requests.take()); len(writes) > 0 {
		t.Errorf("the manager wrote: %v", writes)
	}
	if err := w.get(&appsv1.Deployment{}, "web"); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("it was created: %v", err)
	}
}

// Defect 4 of wave: what is outside of the namespaces that the manager watches was
// refused.
func TestDefect4AdmissionRefusesNothingElsewhere(t *testing.T) {
	w := newWorld(t)
	w.options.Namespaces = []string{newNamespace(t)}
	w.admit()
	w.apply(deployment("web", envFrom(configMapRef("app"))), deployment("far", envFrom(configMapRef("app")), waveTracked[:len("wave.pusher.com/")]+"extra-configmaps", "elsewhere/app"))
	for _, name := range []string{"web", "far"} {
		if d := w.deploymentNow(name); len(d.Spec.Template.Spec.SchedulingGates) > 0 || d.Spec.Template.Annotations != nil {
			t.Errorf("%s was changed: %+v", name, d.Spec.Template)
		}
	}
}

// wave's way to suspend, for tooling that relies on it.
func TestSuspensionAsWaveDoesIt(t *testing.T) {
	w := newWorld(t)
	w.options.SuspendBy = workloads.SuspendByScheduler
	w.admit()
	w.apply(workload("StatefulSet", "web", envFrom(configMapRef("app"))))
	set := &appsv1.StatefulSet{}
	if err := w.get(set, "web"); err != nil {
		t.Fatal(err)
	}
	if set.Spec.Template.Spec.SchedulerName != waveScheduler || set.Annotations["wave.pusher.com/scheduling-disabled"] != "default-scheduler" {
		t.Errorf("it is not suspended: %+v", set)
	}
	w.eventually(func() error { return want(1, len(w.pods("web"))) })
	w.configMap("app", "a", "1")
	w.runs("web", 1, wantHash(t, values{"app": {"a": "1"}}, nil))
}

// Case (c) with the manager gone at each moment: the workload ends right, and
// nothing stays suspended.
func TestAdmittedCaseCWithTheManagerGone(t *testing.T) {
	steps := []struct {
		name string
		do   func(*world)
	}{
		{"the workload is made", func(w *world) { w.apply(deployment("web", envFrom(configMapRef("app"), secretRef("db")))) }},
		{"the first object is made", func(w *world) { w.configMap("app", "a", "1") }},
		{"the second object is made", func(w *world) { w.secret("db", "p", "q") }},
	}
	hash := wantHash(t, values{"app": {"a": "1"}}, values{"db": {"p": "q"}})
	for gone := range len(steps) + 1 {
		name := "before the end"
		if gone < len(steps) {
			name = "before " + steps[gone].name
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.admit()
			for i, step := range steps {
				if i == gone {
					w.halt()
				}
				step.do(w)
			}
			w.halt()
			w.serve()
			w.endsRight(hash)
		})
	}
}

// endsRight waits until web runs with the hash, and nothing is left of a suspension.
func (w *world) endsRight(hash string) {
	w.t.Helper()
	w.runs("web", 1, hash)
	d := w.deploymentNow("web")
	if len(d.Spec.Template.Spec.SchedulingGates) > 0 || d.Annotations[native+"suspended"] != "" {
		w.t.Errorf("something is left of the suspension: %+v", d)
	}
}

// Case (c) with a webhook that cannot answer: no write of the user's is refused,
// none takes longer than the webhook's timeout, and the ring catches up.
func TestAdmittedCaseCWithoutAnAnswer(t *testing.T) {
	for name, fault := range map[string]func(*world){
		"unreachable": func(*world) {},
		"slow":        func(w *world) { w.blackHole(w.webhooks.Options.Address) },
		"expired": func(w *world) {
			w.manage(func(o *manager.Options) {
				o.Admission = w.webhooks.Options
				o.Admission.Now = func() time.Time { return time.Now().AddDate(-20, 0, 0) }
			})
			w.webhooks.WaitInjected(w.t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.register()
			fault(w)
			if name != "expired" {
				w.manage()
			}
			w.apply(deployment("web", envFrom(configMapRef("app")))) // no later than the API server gives it up
			w.configMap("app", "a", "1")
			w.endsRight(wantHash(t, values{"app": {"a": "1"}}, nil))
		})
	}
}

// blackHole takes connections and says nothing.
func (w *world) blackHole(address string) {
	w.t.Helper()
	l, err := (&net.ListenConfig{}).Listen(w.t.Context(), "tcp", address)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.t.Cleanup(func() { _ = conn.Close() })
		}
	}()
}
