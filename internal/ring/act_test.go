package ring_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
)

// writer answers an update with a newer version, or with an error.
type writer struct {
	err  error
	sent []client.Object
	// options are those of the last write.
	options client.UpdateOptions
	patched string
}

func (w *writer) update(ctx context.Context, o client.Object) error {
	if _, ok := ctx.Deadline(); !ok {
		return errors.New("the write has no deadline")
	}
	w.sent = append(w.sent, o.DeepCopyObject().(client.Object))
	if w.err == nil {
		o.SetResourceVersion("8")
	}
	return w.err
}

type statusWriter struct {
	client.SubResourceWriter
	*writer
}

// Update is that of a status.
func (w statusWriter) Update(ctx context.Context, o client.Object, options ...client.SubResourceUpdateOption) error {
	all := client.SubResourceUpdateOptions{}
	all.ApplyOptions(options)
	w.options = all.UpdateOptions
	return w.update(ctx, o)
}

type objectWriter struct {
	client.Writer
	*writer
}

// Update is that of an object.
func (w objectWriter) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	w.options = client.UpdateOptions{}
	w.options.ApplyOptions(options)
	return w.update(ctx, o)
}

// Patch is that of an object.
func (w objectWriter) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	all := client.PatchOptions{}
	all.ApplyOptions(options)
	w.options.FieldManager = all.FieldManager
	raw, err := patch.Data(o)
	w.patched = string(raw)
	return errors.Join(err, w.update(ctx, o))
}

// Both updates send what was read, changed, at the version that was read, whatever the
// change does to that, and return the answer.
func TestUpdateNamesTheVersionThatWasRead(t *testing.T) {
	t.Parallel()
	set := func(c *corev1.ConfigMap) { c.Data, c.ResourceVersion = map[string]string{"a": "b"}, "1" }
	for name, update := range map[string]func(w *writer, read *corev1.ConfigMap) (*corev1.ConfigMap, error){
		"object": func(w *writer, read *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			return ring.Update(t.Context(), objectWriter{writer: w}, read, set)
		},
		"status": func(w *writer, read *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			return ring.UpdateStatus(t.Context(), statusWriter{writer: w}, read, set)
		},
	} {
		w, read := writer{}, aConfigMap("1", 7)
		answer, err := update(&w, read)
		if err != nil || answer.ResourceVersion != "8" || answer.Data["a"] != "b" {
			t.Errorf("%s: %v, %v", name, answer, err)
		}
		if w.options.FieldManager != kube.FieldOwner || !w.options.DisableReadYourWritesConsistency {
			t.Errorf("%s: written with %+v", name, w.options)
		}
		if len(w.sent) != 1 || w.sent[0].GetResourceVersion() != "7" {
			t.Errorf("%s: sent %v", name, w.sent)
		}
		if diff := cmp.Diff(aConfigMap("1", 7), read); diff != "" {
			t.Errorf("%s: what was read has changed: %s", name, diff)
		}
		w.err = aConflict()
		if answer, err = update(&w, read); answer != nil || !ring.IsConflict(err) {
			t.Errorf("%s: %v, %v", name, answer, err)
		}
	}
}

// A ring that reads its own writes from the cache waits for them, and no other does.
func TestReadBack(t *testing.T) {
	t.Parallel()
	w := writer{}
	_, err := ring.UpdateStatus(t.Context(), statusWriter{writer: &w}, aConfigMap("1", 7), func(*corev1.ConfigMap) {}, ring.ReadBack)
	if err != nil || w.options.DisableReadYourWritesConsistency || w.options.FieldManager != kube.FieldOwner {
		t.Errorf("written with %+v, %v", w.options, err)
	}
}

func TestSetFinalizer(t *testing.T) {
	t.Parallel()
	w, read := writer{}, aConfigMap("1", 7)
	answer, err := ring.SetFinalizer(t.Context(), objectWriter{writer: &w}, read, "example.com/a", true)
	if want := `{"metadata":{"finalizers":["example.com/a"],"resourceVersion":"7"}}`; err != nil || w.patched != want || answer.ResourceVersion != "8" || w.options.FieldManager != kube.FieldOwner {
		t.Errorf("%s, %v", w.patched, err)
	}
	if _, err = ring.SetFinalizer(t.Context(), objectWriter{writer: &w}, answer, "example.com/a", false); err != nil || w.patched != `{"metadata":{"finalizers":null,"resourceVersion":"8"}}` {
		t.Errorf("%s, %v", w.patched, err)
	}
	if len(read.Finalizers) > 0 {
		t.Error("what was read has changed")
	}
}

// reader answers with what the API server has.
type reader struct {
	client.Reader

	has *corev1.ConfigMap
	err error
}

// Get is that of metadata.
func (r reader) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if o.GetObjectKind().GroupVersionKind().Kind != "ConfigMap" {
		return errors.New("the kind is unknown")
	}
	if r.err == nil {
		o.SetUID(r.has.UID)
		o.SetResourceVersion(r.has.ResourceVersion)
	}
	return r.err
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		live            reader
		fails, conflict bool
	}{
		"the same":        {live: reader{has: aConfigMap("1", 7)}},
		"another version": {live: reader{has: aConfigMap("1", 8)}, fails: true, conflict: true},
		"a namesake":      {live: reader{has: aConfigMap("2", 7)}, fails: true, conflict: true},
		"gone":            {live: reader{err: apierrors.NewNotFound(schema.GroupResource{}, "c")}, fails: true, conflict: true},
		"not answered":    {live: reader{err: errDenied}, fails: true},
	} {
		err := ring.Confirm(t.Context(), c.live, corev1.SchemeGroupVersion.WithKind("ConfigMap"), aConfigMap("1", 7))
		if (err != nil) != c.fails || ring.IsConflict(err) != c.conflict {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// twisted is an object whose copy is of another type.
type twisted struct{ *corev1.ConfigMap }

func TestUpdateNeedsACopy(t *testing.T) {
	t.Parallel()
	w := writer{}
	if _, err := ring.Update(t.Context(), objectWriter{writer: &w}, twisted{aConfigMap("1", 7)}, func(twisted) {}); err == nil || len(w.sent) > 0 {
		t.Errorf("sent %v, %v", w.sent, err)
	}
}

func TestPreconditions(t *testing.T) {
	t.Parallel()
	if p := ring.Preconditions("u", "7"); *p.UID != "u" || *p.ResourceVersion != "7" {
		t.Errorf("%v", p)
	}
}

// A patch names the object and its version, beside what it changes.
func TestMergePatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change map[string]any
		want   string
	}{
		"of the spec":        {map[string]any{"spec": map[string]any{"replicas": 1}}, `{"metadata":{"resourceVersion":"7","uid":"u"},"spec":{"replicas":1}}`},
		"of an annotation":   {map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": nil}}}, `{"metadata":{"annotations":{"a":null},"resourceVersion":"7","uid":"u"}}`},
		"of another version": {map[string]any{"metadata": map[string]any{"resourceVersion": "6"}}, `{"metadata":{"resourceVersion":"7","uid":"u"}}`},
	} {
		patch, err := ring.MergePatch("u", "7", c.change)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		raw, err := patch.Data(nil)
		if err != nil || string(raw) != c.want || patch.Type() != types.MergePatchType {
			t.Errorf("%s: %s %s, %v", name, patch.Type(), raw, err)
		}
	}
	if _, err := ring.MergePatch("u", "7", map[string]any{"spec": func() {}}); err == nil {
		t.Error("what cannot be encoded is a patch")
	}
}

// invalid is the answer that the API server gives with the code 422.
func invalid(details *metav1.StatusDetails) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusUnprocessableEntity, Details: details}}
}

// What is decided again differs from what is refused.
func TestIsConflict(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Resource: "configmaps"}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"none":                        {nil, false},
		"another version":             {aConflict(), true},
		"not found":                   {apierrors.NewNotFound(resource, "c"), true},
		"made by another client":      {apierrors.NewAlreadyExists(resource, "c"), true},
		"changed":                     {ring.ErrConflict, true},
		"too late":                    {ring.ErrTooLate, true},
		"a failed test of a patch":    {invalid(nil), true},
		"a failed test, of a kind":    {invalid(&metav1.StatusDetails{Kind: "configmaps"}), true},
		"an invalid field":            {invalid(&metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "spec"}}}), false},
		"two invalid fields":          {invalid(&metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "a"}, {Field: "b"}}}), false},
		"a refusal without an object": {apierrors.NewForbidden(resource, "c", errDenied), false},
		"an error of the network":     {errDenied, false},
	} {
		if got := ring.IsConflict(c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// The last moment in which a write may begin.
func TestDoBeginsUntilTheEnd(t *testing.T) {
	t.Parallel()
	began := false
	err := ring.Do(t.Context(), func() time.Time { return noon }, noon.Add(1), func(context.Context) error { began = true; return nil })
	if !began || err != nil {
		t.Errorf("begun: %v, %v", began, err)
	}
}
