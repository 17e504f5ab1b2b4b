package manager_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

const noClusters = `
apiVersion: fleet.squaremo.dev/v1alpha1
kind: Module
metadata: {name: shop}
spec:
  selector: {}
  allowEmpty: true
  sync: {source: {git: {url: "https://x.test/a", version: {tag: v1}}}}
`

// Without its kinds the manager runs. The fleet ring says what is missing, and starts
// once they are installed.
func TestTheFleetRingWaitsForItsKinds(t *testing.T) {
	c, ns, log := newClient(t, testenv.Shared()), testenv.Namespace(t), &lockedBuffer{}
	o := options(ns)
	o.LeaderElect, o.Rings, o.Fleet = false, []string{manager.RingConfig, manager.RingFleet}, hub.Options{Now: time.Now}
	o.Log = logr.FromSlogHandler(slog.NewTextHandler(log, nil))
	stop := run(t, testenv.Shared(), o)
	testenv.Eventually(t, func(context.Context) error {
		if said := log.String(); !strings.Contains(said, "are not installed; apply what") {
			return fmt.Errorf("it says %s", said)
		}
		return nil
	})
	objects, err := manifests.KindsOf([]string{manager.RingFleet})
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range objects {
		if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("user")); err != nil {
			t.Fatal(err)
		}
	}
	applyOnce(t, ns, noClusters)
	testenv.Eventually(t, func(ctx context.Context) error {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("fleet.squaremo.dev/v1alpha1")
		u.SetKind("Module")
		if err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "shop"}, u); err != nil {
			return err
		}
		if phase, _, _ := unstructured.NestedString(u.Object, "status", "phase"); phase != "Complete" {
			return fmt.Errorf("its phase is %q", phase)
		}
		return nil
	})
	if err := stop(); err != nil {
		t.Error(err)
	}
}
