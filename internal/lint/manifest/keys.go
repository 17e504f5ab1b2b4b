package manifest

import (
	"slices"
	"sync"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// KeyUse is one of our keys as an object has it.
type KeyUse struct {
	vocabulary.Entry

	Name, Value string
	At          vocabulary.Place
	Path        []string
}

// Keys are the labels and annotations of an object, those of its Pods last.
func (o *Object) Keys() []KeyUse {
	uses := slices.Concat(
		usesIn(o.Object.GetAnnotations(), vocabulary.Annotation, []string{"metadata", "annotations"}),
		usesIn(o.Object.GetLabels(), vocabulary.Label, []string{"metadata", "labels"}),
	)
	if template, path := o.Pods(); template != nil && path != nil {
		uses = append(uses, usesIn(template.Annotations, vocabulary.Template, append(slices.Clone(path), "metadata", "annotations"))...)
	}
	return uses
}

func usesIn(values map[string]string, place vocabulary.Place, path []string) []KeyUse {
	var uses []KeyUse
	for _, name := range SortedKeys(values) {
		uses = append(uses, KeyUse{Entry: Entries()[name], Name: name, Value: values[name], At: place, Path: append(slices.Clone(path), name)})
	}
	return uses
}

// IsOurs is true of a name that the vocabulary has.
func (u *KeyUse) IsOurs() bool { return u.Native != "" }

// Entries are the keys of the vocabulary, by all of their names.
var Entries = sync.OnceValue(func() map[string]vocabulary.Entry {
	found := map[string]vocabulary.Entry{}
	for _, e := range vocabulary.Entries() {
		for _, name := range e.Names() {
			found[name] = e
		}
	}
	return found
})
