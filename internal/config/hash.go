package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// contents are the values of objects. An object that does not exist has no entry.
type contents map[Object]map[string][]byte

// scope is a set of references to hash together, as one workload has them.
type scope struct {
	namespace string
	refs      []Reference
	// ignored are objects and keys that do not count.
	ignored []Reference
	// merged makes objects of one name in several namespaces share a slot, the
	// later winning, as the predecessor does.
	merged bool
}

// hollow says what becomes of references that bring nothing: an object that is
// not there, or has none of the wanted keys.
type hollow int

const (
	// hollowAsFound: an empty entry if the object exists, none if it does not.
	// This is the predecessor's way, and what is written.
	hollowAsFound hollow = iota
	// hollowLeftOut and hollowKept are what might have been written when such an
	// object was in the other state. The Pods would see no difference.
	hollowLeftOut
	hollowKept
)

// document is what is hashed; its JSON form is the predecessor's.
type document struct {
	ConfigMaps map[string]map[string][]byte `json:"configMaps"`
	Secrets    map[string]map[string][]byte `json:"secrets"`
	// Provided is left out where there is none, so that the form stays the
	// predecessor's.
	Provided map[string]map[string][]byte `json:"secretProviderClasses,omitempty"`
}

// hash is the lower-case hexadecimal SHA-256 of the contents that the scope covers.
func (s scope) hash(c contents, h hollow) (string, error) {
	raw, err := json.Marshal(s.document(c, h))
	if err != nil {
		return "", fmt.Errorf("encode config to hash it: %w", err)
	}
	sum := sha256.Sum256(raw)
	clear(raw)
	return hex.EncodeToString(sum[:]), nil
}

func (s scope) document(c contents, h hollow) document {
	d := document{
		ConfigMaps: map[string]map[string][]byte{}, Secrets: map[string]map[string][]byte{}, Provided: map[string]map[string][]byte{},
	}
	for _, ref := range without(s.refs, s.ignored) {
		if values, ok := c[ref.Object]; ok || h == hollowKept {
			s.merge(d.slots(ref.Object.Kind), ref, values)
		}
	}
	if h == hollowLeftOut {
		dropEmpty(d.ConfigMaps)
		dropEmpty(d.Secrets)
		dropEmpty(d.Provided)
	}
	return d
}

func (d document) slots(kind Kind) map[string]map[string][]byte {
	switch kind {
	case Secret:
		return d.Secrets
	case SecretProviderClass:
		return d.Provided
	default:
		return d.ConfigMaps
	}
}

func (s scope) merge(slots map[string]map[string][]byte, ref Reference, values map[string][]byte) {
	name := s.slot(ref.Object)
	if slots[name] == nil {
		slots[name] = map[string][]byte{}
	}
	for _, key := range keys(s, ref, values) {
		slots[name][key] = values[key]
	}
}

// keys are the keys of values that the reference uses and nobody ignores, sorted.
func keys[V any](s scope, ref Reference, values map[string]V) []string {
	ignored := ignoredKeys(ref.Object, s.ignored)
	var used []string
	for key := range values {
		if ref.uses(key) && !ignored[key] {
			used = append(used, key)
		}
	}
	slices.Sort(used)
	return used
}

// hollow is true if a reference brings nothing, so that there are several
// documents that mean the same to the Pods.
func (s scope) hollow(c contents) bool {
	return slices.ContainsFunc(without(s.refs, s.ignored), func(r Reference) bool {
		return len(keys(s, r, c[r.Object])) == 0
	})
}

// like is true if the scopes give the same hash whatever the contents.
func (s scope) like(other scope) bool {
	return reflect.DeepEqual(s.refs, other.refs) && reflect.DeepEqual(s.ignored, other.ignored) &&
		!slices.ContainsFunc(s.refs, func(r Reference) bool { return s.ambiguous(r.Object) })
}

// slot names the object in the document. Names carry no namespace, for equality
// with the predecessor, unless that would make two objects one.
func (s scope) slot(o Object) string {
	if s.merged || !s.ambiguous(o) {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// ambiguous is true for an object of another namespace that shares kind and
// name with some other object of the scope.
func (s scope) ambiguous(o Object) bool {
	return o.Namespace != s.namespace && slices.ContainsFunc(s.refs, func(r Reference) bool {
		return r.Object != o && r.Object.Kind == o.Kind && r.Object.Name == o.Name
	})
}

func dropEmpty(slots map[string]map[string][]byte) {
	for name, values := range slots {
		if len(values) == 0 {
			delete(slots, name)
		}
	}
}
