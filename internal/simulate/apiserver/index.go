package apiserver

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// index finds objects by a field.
type index struct {
	values  client.IndexerFunc
	objects map[string]map[types.NamespacedName]client.Object
}

// IndexField implements [client.FieldIndexer].
func (s *Store) IndexField(_ context.Context, obj client.Object, field string, values client.IndexerFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.kindOf(obj)
	if err != nil {
		return err
	}
	if k.indices[field] != nil {
		return nil // a clone has it already
	}
	i := &index{values: values, objects: map[string]map[types.NamespacedName]client.Object{}}
	for _, known := range k.objects {
		i.add(known)
	}
	k.indices[field] = i
	return nil
}

func (i *index) add(obj client.Object) {
	for _, value := range i.values(obj) {
		if i.objects[value] == nil {
			i.objects[value] = map[types.NamespacedName]client.Object{}
		}
		i.objects[value][client.ObjectKeyFromObject(obj)] = obj
	}
}

func (i *index) remove(obj client.Object) {
	for _, value := range i.values(obj) {
		delete(i.objects[value], client.ObjectKeyFromObject(obj))
	}
}

func (i *index) find(namespace, value string) []client.Object {
	found := slices.Collect(maps.Values(i.objects[value]))
	found = slices.DeleteFunc(found, func(obj client.Object) bool { return namespace != "" && obj.GetNamespace() != namespace })
	slices.SortFunc(found, byName)
	return found
}

func (i *index) clone() *index {
	c := &index{values: i.values, objects: make(map[string]map[types.NamespacedName]client.Object, len(i.objects))}
	for value, objects := range i.objects {
		c.objects[value] = maps.Clone(objects)
	}
	return c
}
