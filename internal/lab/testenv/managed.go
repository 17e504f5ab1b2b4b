package testenv

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// Parallel lets more tests run at a time than there are processors, for packages
// whose tests wait for controllers most of the time. Call it from TestMain.
func Parallel(tests int) {
	flag.Parse()
	if err := flag.Set("test.parallel", fmt.Sprint(tests)); err != nil {
		panic(err)
	}
}

// Managed runs a manager until the end of the test, or until stop, which returns
// once it has stopped. What it logs, down to the least detail, is shown if the test
// fails. An error of it fails the test, unless the faults have stopped it.
func Managed(t testing.TB, faults *fault.Injector, run func(context.Context, logr.Logger) error) (stop func()) {
	t.Helper()
	log := &Buffer{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := run(ctx, logr.FromSlogHandler(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.Level(-1)})))
		if err != nil && !faults.HasStopped() {
			t.Error(err)
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
		if t.Failed() {
			t.Log(log.String())
		}
	})
	t.Cleanup(stop)
	return stop
}

// Buffer is a buffer that several may write to. The zero value is empty.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements [io.Writer].
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p) //nolint:wrapcheck // it never fails
}

// String is what was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Kinds makes the CustomResourceDefinitions among some objects known to the API
// server, and returns once they are served.
func Kinds[T client.Object](t testing.TB, c client.Client, objects []T) {
	t.Helper()
	for _, obj := range objects {
		if obj.GetObjectKind().GroupVersionKind().Kind != "CustomResourceDefinition" {
			continue
		}
		Apply(t, c, obj)
		Eventually(t, func(ctx context.Context) error { return established(ctx, c, obj) })
		Eventually(t, func(context.Context) error { return discovered(c, obj) })
	}
}

// discovered is nil once clients find the kind, which may be later than it is established.
func discovered(c client.Client, crd client.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return fmt.Errorf("read %s: %w", crd.GetName(), err)
	}
	group, _, _ := unstructured.NestedString(content, "spec", "group")
	kind, _, _ := unstructured.NestedString(content, "spec", "names", "kind")
	_, err = c.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
	return err //nolint:wrapcheck // it says which kind
}

// Typed returns objects of the kinds of Kubernetes by their types, and the others as they are.
func Typed(t testing.TB, objects []*unstructured.Unstructured) []client.Object {
	t.Helper()
	all := make([]client.Object, 0, len(objects))
	for _, obj := range objects {
		typed, err := kube.Served().New(obj.GroupVersionKind())
		of, ok := typed.(client.Object)
		if runtime.IsNotRegisteredError(err) || !ok {
			all = append(all, obj)
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, of, true); err != nil {
			t.Fatal(err)
		}
		all = append(all, of)
	}
	return all
}

// Apply applies an object, which says of which kind it is, as a user does.
func Apply(t testing.TB, c client.Client, obj client.Object) {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("user"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
}

// Field reads an object, and returns what one of its fields says; an error as long as that
// is not what is waited for.
func Field(ctx context.Context, c client.Client, obj *unstructured.Unstructured, is func(string) bool, path ...string) (string, error) {
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return "", fmt.Errorf("get %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	found, _, err := unstructured.NestedFieldNoCopy(obj.Object, path...)
	value := fmt.Sprint(found)
	if err != nil || found == nil || !is(value) {
		return value, fmt.Errorf("%s of %s %s is %.300s", strings.Join(path, "."), obj.GetKind(), obj.GetName(), value)
	}
	return value, nil
}

func established(ctx context.Context, c client.Client, crd client.Object) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(crd.GetObjectKind().GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(crd), u); err != nil {
		return fmt.Errorf("get the kind: %w", err)
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, condition := range conditions {
		if m, ok := condition.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
			return nil
		}
	}
	return errors.New("the kind is not established")
}
