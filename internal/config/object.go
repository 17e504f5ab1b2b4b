package config

import (
	"slices"
	"strings"
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

// Object names an object that holds config.
type Object struct {
	Kind            Kind
	Namespace, Name string
}

// From names the object as seen from a namespace: "Secret db", or
// "Secret vault/db" where it lives elsewhere.
func (o Object) From(namespace string) string {
	if o.Namespace == namespace {
		return string(o.Kind) + " " + o.Name
	}
	return string(o.Kind) + " " + o.Namespace + "/" + o.Name
}

// compare orders objects by kind, namespace and name.
func (o Object) compare(other Object) int {
	if c := strings.Compare(string(o.Kind), string(other.Kind)); c != 0 {
		return c
	}
	if c := strings.Compare(o.Namespace, other.Namespace); c != 0 {
		return c
	}
	return strings.Compare(o.Name, other.Name)
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
	// spaced is true if the entry had spaces around it, for which the
	// predecessor drops it.
	spaced bool
}

// KeyUse is the use of one key of an object.
type KeyUse struct {
	Name     string
	Required bool
}

// uses is true if the key counts.
func (r Reference) uses(key string) bool {
	return r.Whole() || slices.ContainsFunc(r.Keys, func(u KeyUse) bool { return u.Name == key })
}

// Whole is true if every key of the object counts.
func (r Reference) Whole() bool { return r.Keys == nil }
