package reloader

import (
	"cmp"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Object is an object of a namespace that may roll its workloads.
type Object struct {
	Kind content.Kind
	Name string
	Mark Mark
	// Sum is that of its content, by which Reloader records what it has rolled for.
	Sum string
}

// Compare orders objects by kind and name.
func (o Object) Compare(other Object) int {
	return cmp.Or(cmp.Compare(o.Kind, other.Kind), cmp.Compare(o.Name, other.Name))
}

// markKey has the mark of an object that was reduced, sumKey its sum. They are never written to the API server.
const (
	markKey = "mark"
	sumKey  = "sum"
)

// Reduce is [content.Digest] with the mark of the object, and its sum. It is for caches, and changes the object in place. It is
// that alone without options.
func (o *Options) Reduce(obj client.Object) {
	if o == nil || content.IsDigested(obj) {
		content.Digest(obj)
		return
	}
	mark, sum := o.MarkOf(obj.GetAnnotations(), obj.GetLabels()), sumOf(obj)
	content.Digest(obj)
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[sumKey] = sum
	if mark != Plain || o.Selector != nil { // else what is kept of it says the same
		annotations[markKey] = string(mark)
	}
	obj.SetAnnotations(annotations)
}

// ObjectOf is an object, reduced or as it is.
func (o *Options) ObjectOf(obj client.Object) Object {
	of := Object{Kind: content.ObjectOf(obj).Kind, Name: obj.GetName()}
	if of.Sum = obj.GetAnnotations()[sumKey]; !content.IsDigested(obj) {
		of.Sum = sumOf(obj)
	}
	if mark, marked := obj.GetAnnotations()[markKey]; marked && content.IsDigested(obj) {
		of.Mark = Mark(mark)
	} else {
		of.Mark = o.MarkOf(obj.GetAnnotations(), obj.GetLabels())
	}
	return of
}

// Differ reports whether two versions of an object have different marks.
func (o *Options) Differ(a, b client.Object) bool {
	return o != nil && o.ObjectOf(a).Mark != o.ObjectOf(b).Mark
}

// Concerns reports whether a workload of a namespace with such annotations, of its own and of its Pod template, is
// one for which annotations of Reloader decide, or have a mistake.
func (o *Options) Concerns(namespace string, annotations, template map[string]string) bool {
	if o == nil || o.Skips(namespace) {
		return false
	}
	return o.AutoAll || o.mentions(annotations) || o.mentions(template)
}

func (o *Options) mentions(annotations map[string]string) bool {
	for name := range annotations {
		if vocabulary.IsOfReloader(name) {
			return true
		}
	}
	for _, name := range o.Names {
		if _, found := annotations[name]; found {
			return true
		}
	}
	return false
}

// Decisive are the names of the annotations of a workload that decide by what it is rolled.
func (o *Options) Decisive() []string {
	names := o.triggerNames()
	for _, k := range kinds {
		names = append(names, o.name(k.exclude))
	}
	return names
}

// Triggers are the names of those annotations of a workload by which it was opted in.
func (o *Options) Triggers(annotations map[string]string) []string {
	return slices.DeleteFunc(o.triggerNames(), func(name string) bool {
		_, found := annotations[name]
		return !found
	})
}

func (o *Options) triggerNames() []string {
	names := []string{o.name(vocabulary.ReloaderAuto), o.name(vocabulary.ReloaderSearch)}
	for _, k := range kinds {
		names = append(names, o.name(k.auto), o.name(k.list))
	}
	return names
}

// Names are the plain names that a list has of a kind.
func (w *Wants) Names(kind content.Kind) []string {
	return slices.Sorted(maps.Keys(w.triggers[kind].names))
}
