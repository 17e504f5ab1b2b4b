package cli_test

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// onControlPlane runs the tests on a control plane; the commands that scripts
// run are this binary again, and start none.
type onControlPlane struct{ m *testing.M }

func (o onControlPlane) Run() int {
	if err := flag.Set("test.parallel", strconv.Itoa(scriptsAtATime)); err != nil {
		panic(err)
	}
	return testenv.Run(o.m, testenv.Options{Nodes: 3, Alone: true}) // commands install and remove kinds, and speak of all namespaces
}

// scriptsAtATime is how many scripts run at the same time, unless -parallel says otherwise: most
// of their time they wait for a manager or for Pods.
const scriptsAtATime = 4

func TestMain(m *testing.M) {
	testscript.Main(onControlPlane{m}, map[string]func(){"spillway": spillway, "kubectl-kudo": spillway, "spillway-worker": work})
}

func spillway() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, command.Environment{
		Args: os.Args, Out: os.Stdout, Err: os.Stderr, Lookup: os.LookupEnv, Now: time.Now,
	})
	stop()
	os.Exit(code)
}

// TestScripts runs what a person types. Each script has a namespace of its own.
func TestScripts(t *testing.T) {
	t.Parallel() // with the demo, which has a cluster of its own
	const dir = "testdata"
	sets := variables(t, dir)
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			namespace := testenv.Namespace(t)
			env.Setenv("KUBECONFIG", testenv.Shared().Kubeconfig())
			env.Setenv("NS", namespace)
			env.Setenv("SERVER", testenv.Shared().Config().Host)
			env.Setenv("HOME", env.WorkDir)
			return startWorker(env, sets)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"run": run, "apply": apply, "apply-cluster": applyCluster, "delete": remove, "eventually": eventually, "kubeconfig-as": kubeconfigAs,
			"cluster": fleetCluster, "may": hubMay, "reporting": reporting, "told": told, "exits": exits, "rollback-to-kept": rollbackToKept,
			"execution": execution,
		},
	})
}

// TestKUDOIsInstalled: two managers do not run the plans of the same Instances.
// It stands apart from the scripts, which share the cluster with one another.
func TestKUDOIsInstalled(t *testing.T) {
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	webhook := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kudo-manager-instance-admission-webhook-config"}}
	if err := c.Create(t.Context(), webhook); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), webhook); err != nil {
			t.Error(err)
		}
	})
	namespace := testenv.Namespace(t)
	for _, test := range []struct {
		command, says string
		code          int
	}{
		{"install -n " + namespace + "-system --watch-namespaces=" + namespace, "error: nothing was installed: KUDO runs the plans of Instances, or its webhook still denies every change of them; stop it", 1},
		{"check --namespaces=" + namespace, "✗ KUDO runs the plans of Instances", 1},
		{"check --namespaces=" + namespace + " --rings=config,zones", "✓ Kubernetes", 0},
	} {
		out := &testenv.Buffer{}
		args := append([]string{"spillway"}, strings.Fields(test.command)...)
		code := cli.Run(t.Context(), command.Environment{
			Args: append(args, "--kubeconfig="+testenv.Shared().Kubeconfig()), Out: out, Err: out, Now: time.Now, Lookup: os.LookupEnv,
		})
		if code != test.code || !strings.Contains(out.String(), test.says) {
			t.Errorf("%s: exit code %d\n%s", test.command, code, out)
		}
	}
}
