package apiserver

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldManagers know who owns which fields, by the code of the API server. Those of a
// kind are made when something of it is applied for the first time: it takes a while,
// and most simulations apply nothing.
type fieldManagers map[schema.GroupVersionKind]*managedfields.FieldManager

// Apply implements [client.Writer].
func (s *Store) Apply(_ context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	o := (&client.ApplyOptions{}).ApplyOptions(opts)
	wanted, err := configuration(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	applied, err := s.apply(wanted, o)
	if err != nil {
		return err
	}
	return answer(obj, applied)
}

// configuration is what is to be applied, as an object.
func configuration(obj runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode what is to be applied: %w", err)
	}
	u := &unstructured.Unstructured{}
	return u, refused(u.UnmarshalJSON(raw))
}

// answer puts what was applied where it came from.
func answer(obj runtime.ApplyConfiguration, applied client.Object) error {
	is, err := content(applied)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(is)
	if err != nil {
		return fmt.Errorf("encode what was applied: %w", err)
	}
	return refused(json.Unmarshal(raw, obj))
}

func (s *Store) apply(wanted *unstructured.Unstructured, o *client.ApplyOptions) (client.Object, error) {
	wanted, err := s.inOneVersion(wanted)
	if err != nil {
		return nil, err
	}
	k, err := s.kindOf(wanted)
	if err != nil {
		return nil, err
	}
	if len(k.objects) == 0 {
		k.gvk = wanted.GroupVersionKind() // nothing is stored in another version
	}
	fields, err := s.fields.of(s, k)
	if err != nil {
		return nil, err
	}
	before, exists := k.objects[client.ObjectKeyFromObject(wanted)]
	if exists {
		if err := k.checkPreconditions(before, preconditionsOf(wanted)); err != nil {
			return nil, err
		}
	}
	live, err := s.live(k, before, wanted)
	if err != nil {
		return nil, err
	}
	merged, err := fields.Apply(live, wanted, o.FieldManager, o.Force != nil && *o.Force)
	if err != nil {
		return nil, err
	}
	after, err := s.stored(k, merged)
	if err != nil {
		return nil, err
	}
	if !exists {
		clearStatus(after)
		if len(o.DryRun) > 0 {
			return after, s.ready(k, after)
		}
		return s.create(k, after)
	}
	keepStatus(before, after)
	if len(o.DryRun) > 0 {
		return after, s.settle(k, before, after)
	}
	return s.replace(k, before, after)
}

// live is what is applied to: the object, or one that says only which it is.
func (s *Store) live(k *kind, before client.Object, wanted *unstructured.Unstructured) (runtime.Object, error) {
	if before != nil {
		return before.DeepCopyObject(), nil
	}
	return s.typed(k, map[string]any{
		"apiVersion": wanted.GetAPIVersion(), "kind": wanted.GetKind(),
		"metadata": map[string]any{"name": wanted.GetName(), "namespace": wanted.GetNamespace()},
	})
}

// track notes who has changed what of an object of which something was applied.
func (f *fieldManagers) track(s *Store, k *kind, before, after client.Object, manager string) (client.Object, error) {
	if len(before.GetManagedFields()) == 0 || manager == "" {
		return after, nil
	}
	fields, err := f.of(s, k)
	if err != nil {
		return nil, err
	}
	after.SetManagedFields(before.GetManagedFields())
	tracked, ok := fields.UpdateNoErrors(before.DeepCopyObject(), after, manager).(client.Object)
	if !ok {
		return after, nil
	}
	return tracked, nil
}

func (f *fieldManagers) of(s *Store, k *kind) (*managedfields.FieldManager, error) {
	if known := (*f)[k.gvk]; known != nil {
		return known, nil
	}
	made, err := managedfields.NewDefaultFieldManager(converterOf(k.gvk), unconverted{}, undefaulted{}, maker{s, k}, k.gvk, k.gvk.GroupVersion(), "", nil)
	if err != nil {
		return nil, fmt.Errorf("owners of the fields of %s: %w", k.gvk.Kind, err)
	}
	if *f == nil {
		*f = fieldManagers{}
	}
	(*f)[k.gvk] = made
	return made, nil
}

// unconverted leaves objects in the one version that the store has of them.
type unconverted struct{}

// Convert implements [runtime.ObjectConvertor].
func (unconverted) Convert(_, _, _ any) error { return nil }

// ConvertToVersion implements [runtime.ObjectConvertor].
func (unconverted) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel implements [runtime.ObjectConvertor].
func (unconverted) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// undefaulted leaves defaults to the store.
type undefaulted struct{}

// Default implements [runtime.ObjectDefaulter].
func (undefaulted) Default(runtime.Object) {}

// maker makes objects of one kind.
type maker struct {
	store *Store
	kind  *kind
}

// New implements [runtime.ObjectCreater].
func (c maker) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	return c.store.typed(c.kind, map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind})
}
