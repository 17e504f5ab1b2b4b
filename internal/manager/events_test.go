package manager_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/ring"
)

// An Event that happens again is counted, and one that quotes a long value arrives: with
// nothing but the permissions of each ring.
func TestRepeatedAndLongEventsArrive(t *testing.T) {
	c := newClient(t, testenv.Shared())
	for _, name := range []string{manager.RingConfig, manager.RingZones, manager.RingPlans, manager.RingFleet, manager.RingAssemblage} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := testenv.Namespace(t)
			rules, err := manifests.RulesOf(name)
			if err != nil {
				t.Fatal(err)
			}
			testenv.Grant(t, c, ns, "reports-"+ns, rules)
			about := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "about"}}
			if err := c.Create(t.Context(), about); err != nil {
				t.Fatal(err)
			}
			r := reporterAs(t, "reports-"+ns)
			r.Warning(about, reasons.RolloutStuck, "%s", longValue)
			arrives(t, c, ns, func(*eventsv1.Event) bool { return true })
			r.Warning(about, reasons.RolloutStuck, "%s", longValue)
			arrives(t, c, ns, func(e *eventsv1.Event) bool { return e.Series != nil && e.Series.Count == 2 })
		})
	}
}

var longValue = string(make([]byte, 30<<10))

// reporterAs is the reporter of a ring whose manager is a user.
func reporterAs(t *testing.T, user string) ring.Reporter {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(testenv.Shared().ConfigAs(user), ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ring.Reporter{Events: mgr.GetEventRecorder("spillway"), Action: "Test"}
}

func arrives(t *testing.T, c client.Client, namespace string, is func(*eventsv1.Event) bool) {
	t.Helper()
	testenv.Eventually(t, func(ctx context.Context) error {
		list := &eventsv1.EventList{}
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if is(&list.Items[i]) {
				return nil
			}
		}
		return fmt.Errorf("%d Events, and none that is expected", len(list.Items))
	})
}
