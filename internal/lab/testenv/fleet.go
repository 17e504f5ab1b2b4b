package testenv

import (
	"context"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/flux"
)

// fleet is what [MainFleet] has started besides the hub.
var fleet struct {
	workloads []*controlplane.ControlPlane
	sources   *flux.Sources
	assets    flux.Assets
}

// MainFleet is [Main] with a hub, which is [Shared], and further clusters of which
// each has an API server of its own. In all of them the kinds of Flux and of
// Cluster API are installed, the real kustomize-controller runs, and [Sources]
// plays source-controller. The hub is never that of all packages, whose tests make Kustomizations
// that no controller is to apply. More tests run at a time than there are processors: most of
// the time they wait for controllers.
func MainFleet(m *testing.M, workloads int) {
	Parallel(6)
	mainFleet(m, Options{Alone: true}, workloads)
}

// MainFlux is [Main] with a control plane of its own, on which Flux runs as [MainFleet] says.
func MainFlux(m *testing.M, options Options) {
	options.Alone = true
	mainFleet(m, options, 0)
}

func mainFleet(m *testing.M, options Options, workloads int) {
	os.Exit(run(m, options, func(ctx context.Context, hub *controlplane.ControlPlane) error {
		return startFleet(ctx, hub, workloads)
	}))
}

func startFleet(ctx context.Context, hub *controlplane.ControlPlane, workloads int) error {
	var err error
	if fleet.assets, err = flux.Find(ctx, os.Stderr); err != nil {
		return err
	}
	if fleet.sources, err = flux.Serve(); err != nil {
		return err
	}
	fleet.workloads = make([]*controlplane.ControlPlane, workloads)
	var group errgroup.Group
	group.Go(func() error { return startFlux(ctx, hub) })
	for i := range fleet.workloads {
		group.Go(func() error {
			var err error
			if fleet.workloads[i], err = hub.Beside(ctx); err != nil {
				return err
			}
			return startFlux(ctx, fleet.workloads[i])
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("start the fleet: %w", err)
	}
	return nil
}

func startFlux(ctx context.Context, cp *controlplane.ControlPlane) error {
	if err := fleet.assets.Install(ctx, cp.Config()); err != nil {
		return err
	}
	if err := fleet.sources.Play(ctx, cp.Config()); err != nil {
		return err
	}
	return fleet.assets.Run(cp)
}

// WithoutHelm is another cluster on which Flux is to run, without the kinds of Helm. The rest
// of Flux is installed and started by what is returned.
func WithoutHelm(t testing.TB) (cp *controlplane.ControlPlane, rest func()) {
	t.Helper()
	cp, err := Shared().Beside(t.Context())
	if err == nil {
		err = fleet.assets.Install(t.Context(), cp.Config(), "helm")
	}
	if err != nil {
		t.Fatal(err)
	}
	return cp, func() {
		if err := startFlux(t.Context(), cp); err != nil {
			t.Fatal(err)
		}
	}
}

// Workload is the i-th cluster that [MainFleet] has started beside the hub.
func Workload(i int) *controlplane.ControlPlane {
	Shared()
	return fleet.workloads[i]
}

// Publish has a version of a repository consist of these files, and returns its
// revision in Flux's words.
func Publish(t testing.TB, url, version string, files map[string]string) (revision string) {
	t.Helper()
	Shared()
	revision, err := fleet.sources.Publish(t.Context(), url, version, files)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// KubeconfigSecret is the Secret by which a cluster is reached, in Cluster API's way.
func KubeconfigSecret(t testing.TB, namespace, cluster string, cp *controlplane.ControlPlane) *corev1.Secret {
	t.Helper()
	raw, err := os.ReadFile(cp.Kubeconfig())
	if err != nil {
		t.Fatal(fmt.Errorf("kubeconfig of %s: %w", cluster, err))
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster + "-kubeconfig"},
		Data:       map[string][]byte{"value": raw},
	}
}
