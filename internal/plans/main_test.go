package plans_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/plans/admit"
)

func TestMain(m *testing.M) {
	testenv.Parallel(8)
	testenv.Main(m, testenv.Options{Nodes: 2})
}

func newClient(t *testing.T, cp *controlplane.ControlPlane) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(kubernetes.AddToScheme(scheme), v1beta1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cp.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// install has the kinds of the ring, and that of groups, and the guard in the API
// server.
func install(t *testing.T, c client.Client) {
	t.Helper()
	objects, err := manifests.KindsOf([]string{manager.RingPlans, manager.RingZones})
	if err != nil {
		t.Fatal(err)
	}
	testenv.Kinds(t, c, objects)
	for _, policy := range admit.Policies() {
		testenv.Apply(t, c, policy)
	}
}
