package config_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/admit"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// warnings collects what the API server warns of.
type warnings struct {
	mu  sync.Mutex
	all []string
}

// HandleWarningHeaderWithContext notes a warning.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

// take returns the warnings since it was last called, sorted.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.all
	w.all = nil
	slices.Sort(taken)
	return taken
}

// warned gives the world a client that collects warnings.
func (w *world) warned() *warnings {
	w.t.Helper()
	collected := &warnings{}
	cfg := rest.CopyConfig(testenv.Shared().Config())
	cfg.WarningHandlerWithContext = collected
	c := clientFor(w.t, cfg)
	w.client = c
	return collected
}

// The policy in the API server and the ring report the same invalid annotations, in
// the same words.
func TestThePolicyAndTheRingReportTheSameProblems(t *testing.T) {
	w := newWorld(t)
	for _, policy := range admit.Declared(pin.Namespaces{}).Policies {
		if err := w.client.Create(t.Context(), policy); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	seen := w.warned()
	w.eventually(func() error { // until the API server has compiled it
		w.apply(deployment("probe", envFrom(configMapRef("app")), native+"pause", "perhaps"))
		if len(seen.take()) == 0 {
			return fmt.Errorf("no warning")
		}
		return nil
	})
	for i, annotation := range []struct{ name, value string }{
		{native + "pause", "true"},
		{native + "pause", "yes"},
		{native + "update-on-config-change", "True"},
		{native + "track-image-pull-secrets", "1"},
		{native + "priority", "-3"},
		{native + "priority", " 12 "},
		{native + "priority", "high"},
		{native + "priority", "1.5"},
		{native + "coalesce-window", "1m30s"},
		{native + "coalesce-window", "0"},
		{native + "coalesce-window", "1.5h"},
		{native + "coalesce-window", "-5s"},
		{native + "coalesce-window", "5"},
		{native + "extra-configmaps", "a, ns/b ,c.d"},
		{native + "extra-configmaps", ""},
		{native + "extra-configmaps", "a/b/c"},
		{"wave.pusher.com/extra-secrets", "a,,b"},
		{"wave.pusher.com/extra-secrets", "UPPER"},
		{native + "ignore-configmaps", "a:key_1, b"},
		{native + "ignore-secrets", "a:b:c"},
		{native + "ignore-secrets", ":key"},
	} {
		name := fmt.Sprintf("web-%d", i)
		w.apply(deployment(name, "containers: [{name: c, image: x}]", annotation.name, annotation.value))
		warned := seen.take()
		problems := w.explain(name).Problems
		if len(warned) == 0 != (len(problems) == 0) {
			t.Errorf("%s: %q: the policy says %q, the ring says %q", annotation.name, annotation.value, warned, problems)
		}
		for _, problem := range problems {
			if _, action, _ := strings.Cut(problem, `": `); len(warned) > 0 && !strings.Contains(warned[0], action) {
				t.Errorf("%s: %q: the policy says %q, the ring says %q", annotation.name, annotation.value, warned, problem)
			}
		}
	}
}
