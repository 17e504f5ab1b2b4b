package hub_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/gates"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/outbound"
)

const gated = `selector: {}, strategy: Incremental, rollout: {progressDeadlineSeconds: 3600, stages: [{name: all, gates: [{name: approve}]}]}`

// gateIsReached rolls a module to a revision whose gate a user decides only once the rollout
// has come to it.
func (w *world) gateIsReached(tag string) {
	w.t.Helper()
	w.module(tag, gated)
	w.eventually(func() error {
		for _, g := range w.gates() {
			if g.Spec.Stage == "all" && g.Spec.ReachedAt != nil {
				return nil
			}
		}
		return errors.New("no gate is reached: " + w.says())
	})
	w.arrives(fmt.Sprintf("a:%[1]s b:%[1]s c:%[1]s", tag), noFault)
}

// TestGateIsMeasured: the gate after the canary is measured once the canary is ready, stops
// the rollout, and is measured again when a user has deleted it.
func TestGateIsMeasured(t *testing.T) {
	w := newWorld(t)
	status, early := atomic.Int32{}, atomic.Bool{}
	status.Store(http.StatusNotFound)
	source404 := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		if w.runs() != "a:v1" {
			early.Store(true)
		}
		rw.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(source404.Close)
	hosts, err := outbound.ParseHosts([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	w.create(&spillway.GateTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "approve"},
		Spec:       spillway.GateTemplateSpec{HTTP: &spillway.HTTPGate{URL: source404.URL + "/{{ .stage }}/{{ .revision }}"}},
	})
	testenv.Managed(t, w.requests, func(ctx context.Context, log logr.Logger) error {
		return manager.Run(ctx, w.requests.Wrap(testenv.Shared().Config()), manager.Options{
			Rings: []string{manager.RingFleet}, Namespaces: w.options.Namespaces, Fleet: w.options, Config: config.Options{Now: time.Now},
			MetricsAddress: "0", ProbeAddress: "0", Version: "test", Log: log, Gates: gates.Options{Hosts: hosts},
		})
	})
	w.clusters("a canary=true", "b")
	w.module("v1", canary)
	const refused = "canary is stopped: gate approve was refused: failed measurements: 1 (failureLimit 0); last: status 404"
	w.eventually(func() error {
		if s := w.status(); s.Phase != "Failed" || s.WaitingFor != refused {
			return errors.New(w.says())
		}
		return nil
	})
	if early.Load() || w.runs() != "a:v1" {
		t.Errorf("it was measured too early, or %s", w.runs())
	}
	status.Store(http.StatusOK)
	for _, g := range w.gates() {
		if err := w.client.Delete(t.Context(), &g); err != nil {
			t.Fatal(err)
		}
	}
	w.complete("a:v1 b:v1")
}
