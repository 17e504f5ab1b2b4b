package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/verdict"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// adopted is with what config a Deployment was taken over, zero if it was not.
func (w *world) adopted(name string) workloads.Baseline {
	w.t.Helper()
	r := &v1alpha1.ConfigRollout{}
	if err := w.get(r, verdict.OfAdopted); err != nil {
		return workloads.Baseline{}
	}
	all, _ := verdict.Adopted(r)
	return all[workloads.Name{Kind: workloads.Deployment, Namespace: w.namespace, Name: name}]
}

// takenOver has a Deployment with the hash of wave, which does not count a Secret that an init container reads.
func takenOver(w *world) (hash string) {
	w.t.Helper()
	w.configMap("app", "a", "1")
	w.secret("init", "p", "1")
	hash = wantHash(w.t, values{"app": {"a": "1"}}, nil)
	spec := envFrom(configMapRef("app")) + "\ninitContainers: [{name: i, image: x, envFrom: [{secretRef: {name: init}}]}]"
	w.apply(withHash(deployment("web", spec), hash))
	return hash
}

// awaitAdopted waits until it is recorded that the Deployment was taken over.
func (w *world) awaitAdopted() {
	w.t.Helper()
	w.eventually(func() error {
		if w.adopted("web").Scope == "" {
			return errors.New("it is not recorded that web was taken over")
		}
		return nil
	})
}

// bare is a Deployment without what any program has written into its annotations but for the hash.
func bare(d *appsv1.Deployment) *appsv1.Deployment {
	hash := d.Spec.Template.Annotations[waveHash]
	d = created(d)
	if hash != "" {
		d.Spec.Template.Annotations = map[string]string{waveHash: hash}
	}
	return d
}

// A change of what wave's hash does not count is rolled once, whatever is done to the workload while it comes: nothing
// that was taken over counts for what came since.
func TestNoEditHasAChangeTakenOver(t *testing.T) {
	rolled := map[string]int{"undo": 3} // ReplicaSets in all; else 2
	for name, edit := range map[string]func(w *world, before *appsv1.Deployment){
		"nothing":             func(*world, *appsv1.Deployment) {},
		"without annotations": func(w *world, _ *appsv1.Deployment) { w.replaced("web", bare(w.deploymentNow("web"))) },
		"restore":             func(w *world, before *appsv1.Deployment) { w.replaced("web", before) },
		"a forged baseline": func(w *world, before *appsv1.Deployment) {
			w.annotate("web", native+"config-baseline", before.Spec.Template.Annotations[waveHash]+":x")
		},
		"undo": func(w *world, before *appsv1.Deployment) {
			d := w.deploymentNow("web")
			d.Spec.Template.Spec.Containers[0].Image = "y"
			w.replaced("web", d)
			w.settledWith("web", 2)
			w.replaced("web", before)
		},
		"it opts out and in": func(w *world, before *appsv1.Deployment) {
			d := bare(before)
			d.Annotations = nil
			w.replaced("web", d)
			if w.isManaged {
				w.settled()
			}
			w.replaced("web", bare(before))
		},
	} {
		for _, down := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, down: %t", name, down), func(t *testing.T) {
				w := newWorld(t)
				hash := takenOver(w)
				before := w.deploymentNow("web")
				w.manage()
				w.awaitAdopted()
				w.settledWith("web", 1)
				w.rests(func() {
					if has := w.deploymentNow("web").Annotations; len(has) > 2 {
						t.Errorf("the Deployment has the annotations %v", has)
					}
				})
				if down {
					w.halt()
				}
				edit(w, before)
				w.secret("init", "p", "2")
				if down {
					w.manage()
				}
				w.hashed("web", hash)
				w.settled()
				w.settledWith("web", max(rolled[name], 2))
				w.rests(func() {})
			})
		}
	}
}

// A Deployment without a hash that was opted in while it ran is rolled once as well; also if nothing on it says any more what
// it ran with.
func TestNoEditHasAChangeTakenOverWithoutAHash(t *testing.T) {
	for _, down := range []bool{false, true} {
		t.Run(fmt.Sprintf("down: %t", down), func(t *testing.T) {
			w := newWorld(t)
			w.configMap("app", "a", "1")
			w.apply(strings.Replace(deployment("web", envFrom(configMapRef("app"))), waveTracked+`: "true"`, "x: z", 1))
			w.settledWith("web", 1)
			w.policy("all", "{track: true}")
			w.manage()
			w.awaitAdopted()
			hash := w.hash("web")
			w.settled()
			if w.deploymentNow("web").Annotations[native+"config-change"] == "" {
				t.Error("the next manager has to read its config")
			}
			if down {
				w.halt()
			}
			w.annotate("web", native+"config-change", "-")
			w.configMap("app", "a", "2")
			if down {
				w.manage()
			}
			w.hashed("web", hash)
			w.settled()
			w.settledWith("web", 2)
			w.rests(func() {
				if b := w.adopted("web"); b.Scope != "" {
					t.Errorf("%+v is recorded of a workload that was rolled", b)
				}
			})
		})
	}
}

// What an earlier manager has written on the workload is moved: it is not rolled, and the next change rolls it once.
func TestTheBaselineOfAnEarlierManagerIsMoved(t *testing.T) {
	for name, is := range map[string]string{"as it was": "1", "changed since": "2"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			hash := takenOver(w)
			w.manage()
			w.awaitAdopted()
			known := w.adopted("web")
			w.halt()
			w.remove(&v1alpha1.ConfigRollout{}, verdict.OfAdopted)
			w.annotate("web", native+"config-baseline", known.String())
			w.secret("init", "p", is)
			w.manage()
			if is == "1" {
				w.awaitAdopted()
				w.settled()
				w.settledWith("web", 1)
				if err := want(known, w.adopted("web")); err != nil {
					t.Error(err)
				}
				w.secret("init", "p", "2")
			}
			w.hashed("web", hash)
			w.settled()
			w.settledWith("web", 2)
			w.rests(func() {
				if has := w.deploymentNow("web").Annotations[native+"config-baseline"]; has != "" {
					t.Errorf("the Deployment has still the baseline %s", has)
				}
			})
		})
	}
}

// Nothing is recorded of what does not exist any more.
func TestAdoptedWorkloadsThatAreGoneAreForgotten(t *testing.T) {
	w := newWorld(t)
	takenOver(w)
	w.manage()
	w.awaitAdopted()
	w.remove(&appsv1.Deployment{}, "web")
	w.eventually(func() error { return want(workloads.Baseline{}, w.adopted("web")) })
	w.rests(func() {})
}

// Where nothing can be recorded, what was taken over stands on the workload; once it can, it is moved.
func TestTheBaselineStandsOnTheWorkloadWithoutRecords(t *testing.T) {
	w := newWorld(t)
	hash := takenOver(w)
	permit := w.refuseRecords()
	w.manage()
	w.eventually(func() error {
		return want(true, strings.HasPrefix(w.deploymentNow("web").Annotations[native+"config-baseline"], hash+":"))
	})
	w.settled()
	permit()
	w.meanwhile = func() { w.clock.Step(time.Second) }
	w.awaitAdopted()
	w.meanwhile = nil
	w.rests(func() {
		if has := w.deploymentNow("web").Annotations[native+"config-baseline"]; has != "" {
			t.Errorf("the Deployment has still the baseline %s", has)
		}
	})
	w.settledWith("web", 1)
}

// The manager is stopped at each of its writes, and another one starts: a change that comes while a tool takes
// away what was written is rolled, and only once.
func TestFaultAdoption(t *testing.T) {
	testenv.Story(t, 3, func(t *testing.T, begin fault.Begin) {
		w := newWorld(t)
		w.options.CoalesceWindow = 0
		hash := takenOver(w)
		before := w.deploymentNow("web")
		w.meanwhile = begin(w.managedBy)
		w.awaitAdopted()
		known := w.adopted("web")
		w.replaced("web", before)
		w.secret("init", "p", "2")
		w.hashed("web", hash)
		w.settledWith("web", 2)
		if now := w.adopted("web"); now != known {
			t.Errorf("it was taken over with %v, and then with %v", known, now)
		}
	})
}
