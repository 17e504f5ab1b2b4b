package trials_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// image is what Pods run, where there are kubelets. It does nothing.
func image() string {
	if named := os.Getenv("IMAGE"); named != "" {
		return named
	}
	return "registry.k8s.io/pause:3.10"
}

// program runs the binary that is tried: this one if none is named.
func program(args ...string) *exec.Cmd {
	if named := os.Getenv("BINARY"); named != "" {
		return exec.Command(named, args...)
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), isProgram+"=1")
	return cmd
}

// world is a namespace with a user in it.
type world struct {
	t         *testing.T
	client    client.WithWatch
	namespace string
	// result is what became of the trial unless it fails.
	result string
	// kubeconfig is how the manager connects.
	kubeconfig string
	// env is added to the environment of the manager.
	env     []string
	manager *process
}

// process is a manager that runs.
type process struct {
	*exec.Cmd

	said *testenv.Buffer
	stop func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	c, err := client.NewWithWatch(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: c, namespace: testenv.Namespace(t), result: "passed", kubeconfig: testenv.Shared().Kubeconfig()}
	if err := installKinds(); err != nil {
		t.Fatal(err)
	}
	return w
}

// installKinds applies the kinds that the program prints.
var installKinds = sync.OnceValue(func() error {
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	objects, err := exported("--rings=config,zones,plans,fleet")
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if obj.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if err := c.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("trials"), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s: %w", obj.GetName(), err)
		}
	}
	return nil
})

// exported are the objects that would be installed.
func exported(args ...string) ([]*unstructured.Unstructured, error) {
	out, err := program(append([]string{"install", "--export"}, args...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("export the manifests: %w", err)
	}
	var objects []*unstructured.Unstructured
	for doc := range strings.SplitSeq(string(out), "---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &obj.Object); err != nil {
			return nil, fmt.Errorf("read the manifests: %w", err)
		}
		if len(obj.Object) > 0 {
			objects = append(objects, obj)
		}
	}
	return objects, nil
}

// manage starts the program as the manager of the namespace, until stop or the end of the
// trial. It must end with exit code 0, and without a word of an error.
func (w *world) manage(args ...string) {
	w.t.Helper()
	p := &process{said: &testenv.Buffer{}, Cmd: program(append([]string{
		"manager", "--kubeconfig=" + w.kubeconfig, "--rings=config,zones,plans", "--namespaces=" + w.namespace,
		"--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0",
	}, args...)...)}
	p.Stdout, p.Stderr, p.Env = p.said, p.said, append(p.Environ(), w.env...)
	if err := p.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	p.stop = sync.OnceFunc(func() {
		before := len(p.said.String())
		_ = p.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			w.t.Errorf("the manager ended: %v", err)
		}
		said := p.said.String()
		if strings.Contains(said[before:], "ERROR") {
			w.t.Errorf("the manager ends with an error: %s", said[before:])
		}
		if w.t.Failed() {
			w.t.Log(said[max(0, len(said)-20_000):])
		}
	})
	w.manager = p
	w.t.Cleanup(p.stop)
}

// run runs the program to its end and returns its output and its exit code.
func (w *world) run(args ...string) (out string, code int) {
	w.t.Helper()
	var said bytes.Buffer
	cmd := program(args...)
	cmd.Stdout, cmd.Stderr = &said, &said
	_ = cmd.Run() // the code says it
	return said.String(), cmd.ProcessState.ExitCode()
}

// in is [world.run] in the namespace.
func (w *world) in(args ...string) (out string, code int) {
	w.t.Helper()
	return w.run(append(args, "--kubeconfig="+testenv.Shared().Kubeconfig(), "-n", w.namespace)...)
}

// says waits until a command prints a text.
func (w *world) says(text string, args ...string) {
	w.t.Helper()
	w.eventually(func(context.Context) error {
		if out, code := w.in(args...); !strings.Contains(out, text) {
			return fmt.Errorf("%s does not say %q but, with exit code %d: %.2000s", strings.Join(args, " "), text, code, out)
		}
		return nil
	})
}

func (w *world) eventually(check func(context.Context) error) {
	w.t.Helper()
	testenv.Eventually(w.t, check)
}

// file is a file with a text.
func (w *world) file(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) apply(manifests ...string) {
	w.t.Helper()
	for _, manifest := range manifests {
		obj := w.object(manifest)
		w.eventually(func(ctx context.Context) error { // a kind may not be served yet
			return w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj.DeepCopy()), client.FieldOwner("user"), client.ForceOwnership)
		})
	}
}

func (w *world) object(manifest string) *unstructured.Unstructured {
	w.t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
		w.t.Fatalf("%v: %s", err, manifest)
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(w.namespace)
	}
	return obj
}

// field waits until a field of an object is something, and returns it.
func (w *world) field(manifest string, is func(string) bool, path ...string) string {
	w.t.Helper()
	obj, value := w.object(manifest), ""
	w.eventually(func(ctx context.Context) (err error) {
		value, err = testenv.Field(ctx, w.client, obj, is, path...)
		return err
	})
	return value
}

func has(text string) func(string) bool {
	return func(s string) bool { return strings.Contains(s, text) }
}

const hash = "spillway.dev/config-hash"

// hashed waits until a workload has another hash than before.
func (w *world) hashed(manifest, before string) string {
	w.t.Helper()
	return w.field(manifest, func(s string) bool { return s != "" && s != before }, "spec", "template", "metadata", "annotations", hash)
}

// pods waits for Pods by name, and returns their UIDs.
func (w *world) pods(names ...string) (uids []types.UID) {
	w.t.Helper()
	for _, name := range names {
		pod := &corev1.Pod{}
		w.eventually(func(ctx context.Context) error {
			return w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, pod)
		})
		uids = append(uids, pod.UID)
	}
	return uids
}

// patch changes a Pod, or a part of it.
func (w *world) patch(pod, patch string, part ...string) {
	w.t.Helper()
	obj, change := &corev1.Pod{}, client.RawPatch(types.StrategicMergePatchType, []byte(patch))
	obj.Namespace, obj.Name = w.namespace, pod
	var err error
	if len(part) > 0 {
		err = w.client.SubResource(part[0]).Patch(context.Background(), obj, change)
	} else {
		err = w.client.Patch(context.Background(), obj, change)
	}
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
}

// counted has managers that start later connect through a proxy, and returns the requests
// of which a test is true, since then.
func (w *world) counted() func(is func(*http.Request) bool) []string {
	w.t.Helper()
	var mu sync.Mutex
	var seen []*http.Request
	w.kubeconfig = testenv.Between(w.t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			mu.Lock()
			seen = append(seen, r.Clone(context.Background()))
			mu.Unlock()
			next.ServeHTTP(rw, r)
		})
	})
	return func(is func(*http.Request) bool) (found []string) {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range seen {
			if is(r) {
				found = append(found, r.Method+" "+r.URL.Path)
			}
		}
		return found
	}
}
