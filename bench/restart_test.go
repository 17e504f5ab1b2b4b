package bench_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

const (
	restartTarget  = time.Second
	residentTarget = 60 // MiB
)

// TestRestartAfterOneEdit edits one ConfigMap of many while the manager is down: a manager
// that begins reads that one, and no other.
func TestRestartAfterOneEdit(t *testing.T) {
	c, ns := newClient(t), testenv.Namespace(t)
	each(t, workloads, func(i int) error {
		app := name("app", i)
		err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: app}, Data: map[string]string{"k": app}})
		if err != nil {
			return err
		}
		return c.Create(t.Context(), deployment(ns, name("tracked", i), useConfigMap(app), map[string]string{tracked: "true"}))
	})
	first := startProcess(t, ns)
	testenv.Eventually(t, func(context.Context) error {
		if n := hashes(atRest(t, c, ns), "tracked")[""]; n > 0 {
			return fmt.Errorf("%d workloads have no hash yet", n)
		}
		return nil
	})
	hashed := lastRoll(t, c, ns).Sub(first.begun)
	first.stop(t)
	edit(t, c, ns, name("app", 0), "edited")

	second := startProcess(t, ns)
	var rolled time.Time
	testenv.Eventually(t, func(context.Context) error {
		if rolled = lastRoll(t, c, ns); rolled.Before(second.begun) {
			return fmt.Errorf("rolled last at %s", rolled)
		}
		return nil
	})
	took, resident, read := rolled.Sub(second.begun), second.resident(t), second.ask(t, "reads")
	second.stop(t)
	fmt.Printf("| first hashes of %d workloads with a ConfigMap each, from the start of the process | %.1f s |\n", workloads, hashed.Seconds())
	fmt.Printf("| a restart after one edit: from the start of the process to the write (target: at most %s) | %.2f s |\n", restartTarget, took.Seconds())
	fmt.Printf("| ConfigMaps read, resident memory (target: 1, at most %d MiB) | %s, %.0f MiB |\n", residentTarget, read, resident)
	if full {
		edit(t, c, ns, name("app", 0), "edited again")
		program(t, fmt.Sprintf("%d workloads, a ConfigMap each", workloads), ns)
	}
	if read != "1" {
		t.Errorf("it read %s ConfigMaps for one that was edited", read)
	}
	if full && took > restartTarget { // the memory is reported
		t.Errorf("it took %s", took)
	}
}

// program prints the resident memory of the program that is released, as a manager of the config ring over what there is in
// a namespace, and how much of it is the program itself; at its most, and once it has given back what starting took.
func program(t *testing.T, over, namespace string) (resident float64) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "spillway")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", binary, "../cmd/spillway").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p := &process{cmd: exec.CommandContext(t.Context(), binary, "manager", "--kubeconfig="+testenv.Shared().Kubeconfig(), "--rings=config", "--namespaces="+namespace,
		"--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0")}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func(context.Context) error {
		peak := p.memory(t, "VmHWM:")
		if resident = p.resident(t); resident > 0.9*peak {
			return fmt.Errorf("%.0f of %.0f MiB are resident", resident, peak)
		}
		return nil
	})
	fmt.Printf("| the program itself over %s: resident memory at its most, once started, and of that the file of the program | %.0f MiB, %.0f MiB, %.0f MiB |\n",
		over, p.memory(t, "VmHWM:"), resident, p.memory(t, "RssFile:"))
	_ = p.cmd.Process.Signal(os.Interrupt)
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	return resident
}

// lastRoll is when a workload was rolled last, as the manager has recorded it.
func lastRoll(t *testing.T, c client.Client, namespace string) time.Time {
	t.Helper()
	list := &appsv1.DeploymentList{}
	if err := c.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var last time.Time
	for i := range list.Items {
		if at := workload.LastRoll(&list.Items[i]).At; at.After(last) {
			last = at
		}
	}
	return last
}
