package cli_test

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/testenv"
)

// onControlPlane runs the tests on a control plane; the commands that scripts
// run are this binary again, and start none.
type onControlPlane struct{ m *testing.M }

func (o onControlPlane) Run() int { return testenv.Run(o.m, testenv.Options{Nodes: 3}) }

func TestMain(m *testing.M) {
	testscript.Main(onControlPlane{m}, map[string]func(){"spillway": spillway})
}

func spillway() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, cli.Environment{
		Args: os.Args, Out: os.Stdout, Err: os.Stderr, Lookup: os.LookupEnv, Now: time.Now,
	})
	stop()
	os.Exit(code)
}

// TestScripts runs what a person types. Each script has a namespace of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			namespace := testenv.Namespace(t)
			env.Setenv("KUBECONFIG", testenv.Shared().Kubeconfig())
			env.Setenv("NS", namespace)
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"apply": apply, "apply-cluster": applyCluster, "delete": remove, "eventually": eventually, "kubeconfig-as": kubeconfigAs,
		},
	})
}
