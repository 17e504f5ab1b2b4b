package content

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"maps"
	"reflect"
	"slices"
)

// Hashes are the hashes of one workload's config at one moment.
type Hashes struct {
	// Desired is what belongs on the template.
	Desired string
	// Equivalent are hashes that mean the same to the Pods.
	Equivalent []string
	// Wave is the hash of what wave reads, empty if that is the same as ours
	// whatever the contents.
	Wave string
	// Unignored is the hash with nothing ignored, empty if nothing is.
	Unignored string
}

// scopes are those whose hashes a template might have.
type scopes struct{ own, wave, unignored scope }

func (s scopes) hash(c contents) (*Hashes, error) {
	h := &Hashes{}
	var err error
	if h.Desired, err = s.own.hash(c, hollowAsFound); err != nil {
		return nil, err
	}
	if s.own.hollow(c) {
		err = errors.Join(h.equivalent(s.own.hash(c, hollowLeftOut)), h.equivalent(s.own.hash(c, hollowKept)))
	}
	var failed [2]error
	if !s.own.like(s.wave) {
		h.Wave, failed[0] = s.wave.hash(c, hollowAsFound)
	}
	if !s.own.like(s.unignored) {
		h.Unignored, failed[1] = s.unignored.hash(c, hollowAsFound)
	}
	return h, errors.Join(err, failed[0], failed[1])
}

func (h *Hashes) equivalent(hash string, err error) error {
	if hash != h.Desired {
		h.Equivalent = append(h.Equivalent, hash)
	}
	return err
}

// contents are the values of objects. An object that does not exist has no entry.
type contents map[Object]map[string][]byte

// scope is a set of references to hash together, as one workload has them.
type scope struct {
	namespace string
	refs      []Reference
	// ignored are objects and keys that do not count.
	ignored []Reference
	// merged makes objects of one name in several namespaces share a slot, the
	// later winning, as in wave.
	merged bool
}

// hollow says how a reference without any value is hashed: the object does not
// exist, or has none of the wanted keys.
type hollow int

const (
	// hollowAsFound: an empty entry if the object exists, none if it does not.
	// wave does this, and it is what is written.
	hollowAsFound hollow = iota
	// hollowLeftOut and hollowKept are what may have been written while such an
	// object was in the other state. It is the same to the Pods.
	hollowLeftOut
	hollowKept
)

// document is what is hashed: the values of objects by their kinds and names. Its JSON form is wave's;
// what the secrets store provides is left out where there is none, so that it stays so.
type document map[Kind]map[string]map[string][]byte

// hash is the lower-case hexadecimal SHA-256 of the contents that the scope covers. Their JSON form
// is never in memory as a whole.
func (s scope) hash(c contents, h hollow) (string, error) {
	sum := sha256.New()
	if err := s.document(c, h).encode(sum); err != nil {
		return "", fmt.Errorf("encode config to hash it: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// encode writes the JSON form of the document, value by value.
func (d document) encode(to hash.Hash) error {
	fields := []string{"configMaps", "secrets"}
	if len(d[SecretProviderClass]) > 0 {
		fields = append(fields, "secretProviderClasses")
	}
	of := map[string]Kind{"configMaps": ConfigMap, "secrets": Secret, "secretProviderClasses": SecretProviderClass}
	return encodeMap(to, fields, func(field string) error {
		objects := d[of[field]]
		return encodeMap(to, slices.Sorted(maps.Keys(objects)), func(name string) error {
			values := objects[name]
			return encodeMap(to, slices.Sorted(maps.Keys(values)), func(key string) error { return encode(to, values[key]) })
		})
	})
}

// encodeMap writes a JSON object of these keys; value writes that of a key. A hash takes all that is written.
func encodeMap(to hash.Hash, keys []string, value func(key string) error) error {
	to.Write([]byte("{"))
	for i, key := range keys {
		if i > 0 {
			to.Write([]byte(","))
		}
		if err := encode(to, key); err != nil {
			return err
		}
		to.Write([]byte(":"))
		if err := value(key); err != nil {
			return err
		}
	}
	to.Write([]byte("}"))
	return nil
}

func encode(to hash.Hash, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode a value: %w", err)
	}
	to.Write(raw)
	clear(raw)
	return nil
}

func (s scope) document(c contents, h hollow) document {
	d := document{ConfigMap: {}, Secret: {}, SecretProviderClass: {}}
	for _, ref := range without(s.refs, s.ignored) {
		if values, ok := c[ref.Object]; ok || h == hollowKept {
			s.merge(d[ref.Object.Kind], ref, values)
		}
	}
	if h == hollowLeftOut {
		for _, objects := range d {
			maps.DeleteFunc(objects, func(_ string, values map[string][]byte) bool { return len(values) == 0 })
		}
	}
	return d
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

// hollow is true if a reference has no value, so that there are several documents
// that mean the same to the Pods.
func (s scope) hollow(c contents) bool {
	return slices.ContainsFunc(without(s.refs, s.ignored), func(r Reference) bool {
		return len(keys(s, r, c[r.Object])) == 0
	})
}

// keys are the keys of values that the reference uses and that are not ignored, sorted.
func keys[V any](s scope, ref Reference, values map[string]V) []string {
	ignored := ignoredKeys(ref.Object, s.ignored)
	var used []string
	for key := range values {
		if ref.UsesKey(key) && !ignored[key] {
			used = append(used, key)
		}
	}
	slices.Sort(used)
	return used
}

// like is true if the scopes give the same hash whatever the contents.
func (s scope) like(other scope) bool {
	return reflect.DeepEqual(s.refs, other.refs) && reflect.DeepEqual(s.ignored, other.ignored) &&
		!slices.ContainsFunc(s.refs, func(r Reference) bool { return s.ambiguous(r.Object) })
}

// slot names the object in the document. Names have no namespace, for equality
// with wave, unless two objects would share one name.
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
