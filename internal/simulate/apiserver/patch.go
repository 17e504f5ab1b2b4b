package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patch implements [client.Writer].
func (s *Store) Patch(_ context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	o := (&client.PatchOptions{}).ApplyOptions(opts)
	return s.patch(obj, patch, keepStatus, o)
}

// Status implements [client.StatusClient].
func (s *Store) Status() client.SubResourceWriter { return s.SubResource("status") }

// SubResource implements [client.SubResourceClientConstructor]. Of subresources
// there are the status, and the scale to be read.
func (s *Store) SubResource(name string) client.SubResourceClient { return subresource{s, name} }

type subresource struct {
	store *Store
	name  string
}

// Get implements [client.SubResourceReader]. A scale is where almost every kind has it.
func (r subresource) Get(ctx context.Context, obj, into client.Object, _ ...client.SubResourceGetOption) error {
	scale, ok := into.(*unstructured.Unstructured)
	if r.name != "scale" || !ok {
		return subresource{r.store, "to read " + r.name}.known()
	}
	of := &unstructured.Unstructured{}
	of.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	if err := r.store.Get(ctx, client.ObjectKeyFromObject(obj), of); err != nil {
		return err
	}
	replicas, found, err := unstructured.NestedFieldNoCopy(of.Object, "spec", "replicas")
	if err != nil || !found {
		return apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "",
			"it has no spec.replicas, which is all that a simulation knows of scales", 0, false)
	}
	scale.SetUID(of.GetUID())
	scale.SetResourceVersion(of.GetResourceVersion())
	there, _, _ := unstructured.NestedInt64(of.Object, "status", "replicas")
	return errors.Join(
		unstructured.SetNestedField(scale.Object, replicas, "spec", "replicas"),
		unstructured.SetNestedField(scale.Object, there, "status", "replicas"),
	)
}

// Create implements [client.SubResourceWriter].
func (r subresource) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return subresource{r.store, "to create " + r.name}.known()
}

// Update implements [client.SubResourceWriter].
func (r subresource) Update(_ context.Context, obj client.Object, _ ...client.SubResourceUpdateOption) error {
	if err := r.known(); err != nil {
		return err
	}
	return r.store.update(obj, keepRest, "") // no test and no ring reads who owns a status
}

// Patch implements [client.SubResourceWriter].
func (r subresource) Patch(_ context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if err := r.known(); err != nil {
		return err
	}
	o := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	return r.store.patch(obj, patch, keepRest, &o.PatchOptions)
}

func (s *Store) patch(obj client.Object, patch client.Patch, keep part, o *client.PatchOptions) error {
	raw, err := patch.Data(obj)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, before, err := s.existing(obj)
	if err != nil {
		return err
	}
	after, err := s.patched(k, before, patch.Type(), raw)
	if err != nil {
		return err
	}
	if err := k.checkPatched(before, after); err != nil {
		return err
	}
	if len(o.DryRun) > 0 {
		keep(before, after)
		if err := s.settle(k, before, after); err != nil {
			return err
		}
		return s.fill(after, obj)
	}
	return s.finish(k, before, after, keep, o.FieldManager, obj)
}

// checkPatched refuses a patch of another object than this one, or of another version
// of it. To an API server the former is a change of an immutable field.
func (k *kind) checkPatched(before, after client.Object) error {
	if after.GetUID() != before.GetUID() {
		return apierrors.NewInvalid(k.gvk.GroupKind(), before.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("metadata", "uid"), after.GetUID(), "field is immutable"),
		})
	}
	return k.checkPreconditions(before, preconditionsOf(after))
}

// patched is an object after a patch. A resourceVersion or a UID in the patch is
// then that of the object, and so is checked as a precondition.
func (s *Store) patched(k *kind, before client.Object, how types.PatchType, raw []byte) (client.Object, error) {
	is, err := content(before)
	if err != nil {
		return nil, err
	}
	original, err := json.Marshal(is)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", before.GetName(), err)
	}
	merged, err := merge(how, original, raw, before)
	if err != nil {
		return nil, err
	}
	will := map[string]any{}
	if err := json.Unmarshal(merged, &will); err != nil {
		return nil, fmt.Errorf("decode %s: %w", before.GetName(), err)
	}
	will["apiVersion"], will["kind"] = k.gvk.GroupVersion().String(), k.gvk.Kind
	return s.typed(k, normalize(will))
}

// normalize turns the numbers that JSON has into those that objects have.
func normalize(content map[string]any) map[string]any {
	for key, value := range content {
		content[key] = normalizeValue(value)
	}
	return content
}

func normalizeValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return normalize(v)
	case []any:
		for i := range v {
			v[i] = normalizeValue(v[i])
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return value
}

func merge(how types.PatchType, original, raw []byte, before client.Object) ([]byte, error) {
	switch how {
	case types.JSONPatchType:
		return mergeJSON(original, raw)
	case types.MergePatchType:
		merged, err := jsonpatch.MergePatch(original, raw)
		return merged, refused(err)
	case types.StrategicMergePatchType:
		if isUntyped(before) {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", schema.GroupResource{}, before.GetName(), "no strategic merge patch of this kind", 0, false)
		}
		merged, err := strategicpatch.StrategicMergePatch(original, raw, before)
		return merged, refused(err)
	default:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("unknown patch type %s", how))
	}
}

func mergeJSON(original, raw []byte) ([]byte, error) {
	patch, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		return nil, refused(err)
	}
	merged, err := patch.Apply(original)
	if err != nil { // the API server answers so to a test that fails
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return merged, nil
}

func refused(err error) error {
	if err == nil {
		return nil
	}
	return apierrors.NewBadRequest(err.Error())
}

// Apply implements [client.SubResourceWriter].
func (r subresource) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return subresource{r.store, "to apply " + r.name}.known()
}

func (r subresource) known() error {
	if r.name == "status" {
		return nil
	}
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "there is no subresource "+r.name+" offline", 0, false)
}

// keepRest is a write of the status alone.
func keepRest(before, after client.Object) {
	kept, ok := before.DeepCopyObject().(client.Object)
	if !ok {
		return
	}
	copyStatus(after, kept)
	assign(kept, after)
	after.SetManagedFields(before.GetManagedFields())
}
