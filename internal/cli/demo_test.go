//go:build linux

package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// TestDemoOnABareCluster: the demo shows all its chapters on a cluster that has never heard
// of Spillway, and leaves nothing there, also if it is interrupted.
func TestDemoOnABareCluster(t *testing.T) {
	t.Parallel()
	cp := testenv.Own(t, controlplane.Options{Nodes: 3})
	if cp.Dir == "" {
		t.Log("the cluster existed before the test: it may have the kinds")
	}
	c, err := client.New(cp.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := traces(t, c)

	whole := startDemo(t, cp)
	if err := whole.Wait(); err != nil {
		t.Errorf("the demo ends with %v: %s", err, whole.Stdout)
	}
	for _, says := range []string{"✗ Deployment catalog failed: ", "An old Pod is rescheduled meanwhile: catalog-", ": MODE=serve\n",
		"ConfigPolicy prices gets onFailure: Rollback", "bad value         stopped at Deployment catalog", "A user edits ConfigMap store", "zones             store-zone-", "one after the other: 6 Pods", "removing namespace spillway-demo-", "removing kind rolloutgroups.spillway.dev"} {
		if !strings.Contains(output(whole), says) {
			t.Errorf("it does not say %q: %s", says, output(whole))
		}
	}
	awaitTraces(t, c, before)

	broken := startDemo(t, cp)
	testenv.Eventually(t, func(context.Context) error {
		if !strings.Contains(output(broken), "A user edits ConfigMap shop") {
			return errors.New(output(broken))
		}
		return nil
	})
	if err := broken.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	exited := &exec.ExitError{}
	if err := broken.Wait(); !errors.As(err, &exited) || exited.ExitCode() != 1 {
		t.Errorf("the interrupted demo ends with %v", err)
	}
	if !strings.HasSuffix(output(broken), "error: interrupted: the demo removed what it made on the cluster\n") {
		t.Error(output(broken))
	}
	awaitTraces(t, c, before)
}

func startDemo(t *testing.T, cp *controlplane.ControlPlane) *exec.Cmd {
	t.Helper()
	program, err := exec.LookPath("spillway") // the test binary, by the name of the command
	if err != nil {
		t.Fatal(err)
	}
	out := &testenv.Buffer{}
	cmd := exec.Command(program, "demo", "--kubeconfig="+cp.Kubeconfig())
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func output(cmd *exec.Cmd) string { return fmt.Sprint(cmd.Stdout) }

// traces are the namespaces, the kinds and the policies of the API server of a cluster.
func traces(t *testing.T, c client.Client) string {
	t.Helper()
	var names []string
	for _, kind := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("NamespaceList"),
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingAdmissionPolicyList"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingAdmissionPolicyBindingList"},
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
	}
	return strings.Join(names, "\n")
}

func awaitTraces(t *testing.T, c client.Client, want string) {
	t.Helper()
	testenv.Eventually(t, func(context.Context) error {
		if got := traces(t, c); got != want {
			return fmt.Errorf("there are\n%s\nand were\n%s", got, want)
		}
		return nil
	})
}
