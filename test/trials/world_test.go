//go:build trials

package trials_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{Nodes: 2}) }

// program is the one that is tried.
func program() string {
	if named := os.Getenv("BINARY"); named != "" {
		return named
	}
	return "../../bin/spillway"
}

// world is a namespace with a user in it.
type world struct {
	t         *testing.T
	client    client.Client
	namespace string
	manager   *exec.Cmd
	said      *testenv.Buffer
}

var installKinds = sync.OnceValue(func() error {
	out, err := exec.Command(program(), "install", "--export", "--rings=config,zones,plans").Output()
	if err != nil {
		return fmt.Errorf("export the manifests: %w", err)
	}
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		return err
	}
	for doc := range strings.SplitSeq(string(out), "---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &obj.Object); err != nil {
			return err
		}
		if obj.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if err := c.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("trials"), client.ForceOwnership); err != nil {
			return err
		}
	}
	return nil
})

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{t: t, namespace: testenv.Namespace(t), said: &testenv.Buffer{}}
	if err := installKinds(); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.client, err = client.New(testenv.Shared().Config(), client.Options{}); err != nil {
		t.Fatal(err)
	}
	return w
}

// manage starts the program as a manager of the namespace, until the end of the trial.
func (w *world) manage(args ...string) {
	w.t.Helper()
	w.manager = exec.Command(program(), append([]string{
		"manager", "--kubeconfig=" + testenv.Shared().Kubeconfig(), "--rings=config,zones,plans", "--namespaces=" + w.namespace,
		"--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0",
	}, args...)...)
	w.manager.Stdout, w.manager.Stderr = w.said, w.said
	if err := w.manager.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.manager.Wait() }()
	w.t.Cleanup(func() {
		_ = w.manager.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			w.t.Errorf("the manager ended: %v", err)
		}
		if said := w.said.String(); w.t.Failed() {
			w.t.Log(said[max(0, len(said)-20_000):])
		}
	})
}

// run runs the program to its end and returns its output and its exit code.
func (w *world) run(args ...string) (out string, code int) {
	w.t.Helper()
	var said bytes.Buffer
	cmd := exec.Command(program(), append(args, "--kubeconfig="+testenv.Shared().Kubeconfig(), "-n", w.namespace)...)
	cmd.Stdout, cmd.Stderr = &said, &said
	_ = cmd.Run() // the code says it
	return said.String(), cmd.ProcessState.ExitCode()
}

func (w *world) apply(manifests ...string) {
	w.t.Helper()
	for _, manifest := range manifests {
		obj := w.object(manifest)
		testenv.Eventually(w.t, func(ctx context.Context) error { // a kind may not be served yet
			return w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj.DeepCopy()), client.FieldOwner("user"), client.ForceOwnership)
		})
	}
}

func (w *world) object(manifest string) *unstructured.Unstructured {
	w.t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
		w.t.Fatal(err)
	}
	obj.SetNamespace(w.namespace)
	return obj
}

// field waits until a field of an object is something, and returns it.
func (w *world) field(manifest string, is func(string) bool, path ...string) string {
	w.t.Helper()
	obj, value := w.object(manifest), ""
	testenv.Eventually(w.t, func(ctx context.Context) error {
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		found, _, err := unstructured.NestedFieldNoCopy(obj.Object, path...)
		if value = fmt.Sprint(found); err != nil || found == nil || !is(value) {
			return fmt.Errorf("%s of %s %s is %.300s", strings.Join(path, "."), obj.GetKind(), obj.GetName(), value)
		}
		return nil
	})
	return value
}

const hash = "spillway.dev/config-hash"

// hashed waits until a Deployment has another hash than before.
func (w *world) hashed(manifest, before string) string {
	w.t.Helper()
	return w.field(manifest, func(s string) bool { return s != "" && s != before }, "spec", "template", "metadata", "annotations", hash)
}
