package manager_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/plans"
)

const idlePackage = `
apiVersion: kudo.dev/v1beta1
kind: OperatorVersion
metadata: {name: app-1}
spec:
  version: "1"
  tasks: [{name: nop, kind: Dummy, spec: {done: true}}]
  plans: {deploy: {phases: [{name: main, steps: [{name: nop, tasks: [nop]}]}]}}
---
apiVersion: kudo.dev/v1beta1
kind: Instance
metadata: {name: web}
spec: {operatorVersion: {name: app-1}}
`

// Without the kinds of kudo.dev the manager runs. The plans ring says what is
// missing, and starts once it is installed.
func TestThePlansRingWaitsForItsKinds(t *testing.T) {
	c, ns, log := newClient(t, testenv.Shared()), testenv.Namespace(t), &lockedBuffer{}
	o := options(ns)
	o.LeaderElect, o.Rings, o.Plans = false, []string{manager.RingConfig, manager.RingPlans}, plans.Options{Now: time.Now}
	o.Log = logr.FromSlogHandler(slog.NewTextHandler(log, nil))
	stop := run(t, testenv.Shared(), o)
	testenv.Eventually(t, func(context.Context) error {
		if said := log.String(); !strings.Contains(said, "the kinds of kudo.dev are not installed; apply what") {
			return fmt.Errorf("it says %s", said)
		}
		return nil
	})
	objects, err := manifests.KindsOf([]string{manager.RingPlans})
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range objects {
		if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("user")); err != nil {
			t.Fatal(err)
		}
	}
	applyOnce(t, ns, idlePackage)
	testenv.Eventually(t, func(ctx context.Context) error {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("kudo.dev/v1beta1")
		u.SetKind("Instance")
		if err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "web"}, u); err != nil {
			return err
		}
		if state, _, _ := unstructured.NestedString(u.Object, "status", "aggregatedStatus", "status"); state != "COMPLETE" {
			return fmt.Errorf("its state is %q", state)
		}
		return nil
	})
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// applyOnce applies objects of kinds that may not be served yet.
func applyOnce(t *testing.T, ns, docs string) {
	t.Helper()
	for doc := range strings.SplitSeq(docs, "---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetNamespace(ns)
		testenv.Eventually(t, func(ctx context.Context) error {
			return newClient(t, testenv.Shared()).Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner("user"))
		})
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *lockedBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *lockedBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
