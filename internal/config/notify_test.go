package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
	"github.com/spillway-dev/spillway/internal/lab/testenv/receiver"
)

// history are the releases of the policies of the world that are over.
func (w *world) history() (all []v1alpha1.PastConfigRelease) {
	w.t.Helper()
	list := &v1alpha1.ConfigPolicyList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		all = append(all, list.Items[i].Status.History...)
	}
	return all
}

// notified makes a Notifier in the world, and its receiver.
func (w *world) notified() *receiver.Receiver {
	w.t.Helper()
	testenv.InstallKinds(w.t, w.client, "../../charts/spillway/generated/notify/*_*.yaml")
	r := receiver.New(w.t)
	w.eventually(func() error { // it is known to the second since when there is a Notifier
		for _, p := range w.history() {
			if !p.FinishedAt.Time.Before(time.Now().Truncate(time.Second)) {
				return fmt.Errorf("the release of %s has just ended", p.Object)
			}
		}
		return nil
	})
	for _, obj := range r.Notifier(w.namespace) {
		if err := w.client.Create(w.t.Context(), obj); err != nil {
			w.t.Fatal(err)
		}
	}
	return r
}

// hears waits until these are the messages, by their beginnings.
func (w *world) hears(r *receiver.Receiver, want ...string) {
	w.t.Helper()
	w.eventually(func() error {
		if said := r.Said(); !slices.EqualFunc(said, want, strings.HasPrefix) {
			return fmt.Errorf("told %q, want %q", said, want)
		}
		return nil
	})
}

// A release that stops at its first workload gives exactly these messages, with the sentence of
// the status; what follows the fix is another release.
func TestANotifierTellsOfAReleaseThatStops(t *testing.T) {
	w := newWorld(t)
	w.options.CoalesceWindow = 0
	underGates(w, "stages: [{name: first, workloads: 1}, {name: rest}]")
	w.halt()
	told := w.notified()
	w.manage(measured.Reached(t))
	w.secret("db", "p", "bad")
	r := w.phase("staged", "Failed")
	bad := []string{"Started Secret/db: ", "Stopped Secret/db: " + r.WaitingFor}
	w.hears(told, bad...)
	w.secret("db", "p", "fixed")
	w.ready("app1", "app2", "app3")
	w.phase("staged", "Complete")
	w.eventually(func() error {
		said := told.Said()
		got := slices.Clone(said)
		for i := range got {
			got[i], _, _ = strings.Cut(got[i], " ")
		}
		if want := []string{"Started", "Stopped", "Ended", "Started", "Ended"}; !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			return fmt.Errorf("told %q", said)
		}
		return nil
	})
}

// A release that gives workloads their previous config back is reported to be returned.
func TestANotifierTellsOfAReleaseThatIsReturned(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	w.policy("staged", pinsAndReturns)
	plainly(w, "app1", "app2", "app3")
	told := w.notified()
	w.manage(measured.Reached(t))
	first := w.pinnedAgain("Deployment", "app1", "")
	w.ready("app1", "app2", "app3")
	w.phase("staged", "Complete")
	w.secret("db", "p", "bad")
	w.isBack("Deployment", "app1", first)
	w.eventually(func() error {
		r := w.status("staged").Releases
		said := told.Said()
		last := len(said) - 1
		if len(r) != 1 || r[0].RolledBack != 1 || last < 1 || !strings.HasPrefix(said[0], "Started Secret/db: ") || !strings.HasPrefix(said[last], "Returned Secret/db: ") {
			return fmt.Errorf("told %q, the status is %+v", said, r)
		}
		return nil
	})
}
