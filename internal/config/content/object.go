package content

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind is a kind of object that holds config.
type Kind string

// The kinds of config.
const (
	ConfigMap Kind = "ConfigMap"
	Secret    Kind = "Secret"
	// SecretProviderClass is config that the secrets store CSI driver mounts.
	SecretProviderClass Kind = "SecretProviderClass"
)

// New returns an empty object of the kind.
func (k Kind) New() client.Object {
	if k == Secret {
		return &corev1.Secret{}
	}
	return &corev1.ConfigMap{}
}

// Object names an object that holds config.
type Object struct {
	Kind            Kind
	Namespace, Name string
}

// ObjectOf returns the name of an object; for what the secrets store driver
// reports of a Pod, that of the class.
func ObjectOf(obj client.Object) Object {
	o := Object{Kind: ConfigMap, Namespace: obj.GetNamespace(), Name: obj.GetName()}
	switch of := obj.(type) {
	case *corev1.Secret:
		o.Kind = Secret
	case *unstructured.Unstructured:
		o.Kind, o.Name = SecretProviderClass, classOf(of)
	}
	return o
}

// From names the object as seen from a namespace: "Secret db", or
// "Secret vault/db" where the object is in another namespace.
func (o Object) From(namespace string) string {
	if o.Namespace == namespace {
		return string(o.Kind) + " " + o.Name
	}
	return string(o.Kind) + " " + o.Namespace + "/" + o.Name
}

// ObjectNamed is the object that [Object.From] has named as seen from a namespace, none if the text names none.
func ObjectNamed(text, namespace string) Object {
	kind, name, ok := strings.Cut(text, " ")
	if !ok {
		return Object{}
	}
	if elsewhere, there, ok := strings.Cut(name, "/"); ok {
		namespace, name = elsewhere, there
	}
	return Object{Kind: Kind(kind), Namespace: namespace, Name: name}
}

// KeyNamed is the key that [Facts.ChangedSince] has named as seen from a namespace, and its object: none if the text
// names none.
func KeyNamed(text, namespace string) (of Object, key string) {
	object, key, ok := strings.Cut(text, ": ")
	if !ok {
		return Object{}, ""
	}
	return ObjectNamed(object, namespace), key
}

// Compare orders objects by kind, namespace and name.
func (o Object) Compare(other Object) int {
	if c := strings.Compare(string(o.Kind), string(other.Kind)); c != 0 {
		return c
	}
	if c := strings.Compare(o.Namespace, other.Namespace); c != 0 {
		return c
	}
	return strings.Compare(o.Name, other.Name)
}

// UsesKey is true if the key counts.
func (r Reference) UsesKey(key string) bool {
	return r.Whole() || slices.ContainsFunc(r.Keys, func(u KeyUse) bool { return u.Name == key })
}

// ParseExtra reads an entry "name" or "namespace/name" of an annotation of a
// workload in a namespace; false if it is neither.
func ParseExtra(kind Kind, namespace, entry string) (Reference, bool) {
	trimmed := strings.TrimSpace(entry)
	of, name, found := strings.Cut(trimmed, "/")
	if !found {
		of, name = namespace, trimmed
	}
	ref := Reference{Object: Object{Kind: kind, Namespace: of, Name: name}, Extra: true, spaced: entry != trimmed}
	return ref, isNamespace(of) && isName(name)
}

// ParseIgnored reads an entry "name" or "name:key" of an annotation of a workload
// in a namespace; false if it is neither.
func ParseIgnored(kind Kind, namespace, entry string) (Reference, bool) {
	name, key, found := strings.Cut(strings.TrimSpace(entry), ":")
	ref := Reference{Object: Object{Kind: kind, Namespace: namespace, Name: name}}
	if found {
		ref.Keys = []KeyUse{{Name: key}}
	}
	return ref, isName(name) && (!found || isKey(key))
}

func isName(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 }

func isNamespace(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 }

func isKey(s string) bool { return len(validation.IsConfigMapKey(s)) == 0 }

// without returns the references that are not ignored as a whole.
func without(refs, ignored []Reference) []Reference {
	if len(ignored) == 0 {
		return refs
	}
	var kept []Reference
	for _, ref := range refs {
		if !slices.ContainsFunc(ignored, func(i Reference) bool { return i.covers(ref.Object) }) {
			kept = append(kept, ref)
		}
	}
	return kept
}

// ignoredKeys are the single keys of an object that do not count.
func ignoredKeys(o Object, ignored []Reference) map[string]bool {
	keys := map[string]bool{}
	for _, i := range ignored {
		if i.Object == o && !i.Whole() {
			keys[i.Keys[0].Name] = true
		}
	}
	return keys
}

// Reference is one use of an object by a workload.
type Reference struct {
	Object Object
	// Keys are those used, nil for all of them.
	Keys []KeyUse
	// Required is true if a Pod cannot start without the object.
	Required bool
	// Extra is true if an annotation names the object, not the Pod template.
	Extra bool
	// spaced is true if the entry had spaces around it, for which wave ignores it.
	spaced bool
}

// KeyUse is the use of one key of an object.
type KeyUse struct {
	Name     string
	Required bool
}

// Whole is true if every key of the object counts.
func (r Reference) Whole() bool { return r.Keys == nil }

// covers is true if the reference is to all of an object.
func (r Reference) covers(o Object) bool { return r.Object == o && r.Whole() }
