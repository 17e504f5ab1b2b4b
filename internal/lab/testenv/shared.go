package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/controlplane"
)

// Options say what to start.
type Options = controlplane.Options

// Main runs the tests of a package. Those that use [Shared] have the control plane of
// all packages, which make test starts, or else one that the first of them starts.
// Call it from TestMain.
func Main(m *testing.M, options Options) { os.Exit(Run(m, options)) }

// Run is [Main] for packages that do more than run their tests; it returns the
// exit code.
func Run(m *testing.M, options Options) int { return run(m, options, nil) }

// run starts with the control plane what belongs beside it, if there is something.
func run(m *testing.M, options Options, beside func(context.Context, *controlplane.ControlPlane) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.SetLogger(logr.Discard()) // each manager has a log of its own
	options.Progress = os.Stderr
	var started *controlplane.ControlPlane
	shared = sync.OnceValue(func() *controlplane.ControlPlane {
		var err error
		if started, err = start(ctx, options, beside); err != nil {
			panic(fmt.Errorf("start the control plane of the tests: %w", err))
		}
		return started
	})
	code := m.Run()
	stop() // an API server that stops waits for its watches
	if started == nil {
		return code
	}
	if err := started.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return code
}

func start(ctx context.Context, options Options, beside func(context.Context, *controlplane.ControlPlane) error) (*controlplane.ControlPlane, error) {
	cp, err := controlplane.StartOrShare(ctx, options)
	if err != nil || beside == nil {
		return cp, err
	}
	if err := beside(ctx, cp); err != nil {
		return nil, errors.Join(err, cp.Stop())
	}
	return cp, nil
}

// shared starts the control plane when it is called first.
var shared func() *controlplane.ControlPlane

// Own starts a control plane for a test that cannot share one, such as one that stops it.
func Own(t testing.TB, o controlplane.Options) *controlplane.ControlPlane {
	t.Helper()
	cp, err := controlplane.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cp
}

// Shared is the control plane of this test process. The first call starts it, or asks
// for that of all packages, and panics if that fails.
func Shared() *controlplane.ControlPlane { return shared() }

// Client is one of an administrator, with the kinds of Kubernetes, of Flux and our own, for the
// control plane of the package.
func Client(t testing.TB) client.Client {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(Shared().Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
