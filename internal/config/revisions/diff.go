package revisions

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
)

// Difference is what differs in one object between two contents.
type Difference struct {
	Kind content.Kind `json:"kind"`
	Name string       `json:"name"`
	// From and To are the digests of both contents, "absent" for an object that did not exist.
	From string `json:"from"`
	To   string `json:"to"`
	// Added, Changed and Removed are names of keys.
	Added   []string `json:"added,omitempty"`
	Changed []string `json:"changed,omitempty"`
	Removed []string `json:"removed,omitempty"`
	// Values are those of the keys of a ConfigMap, if they were asked for; never of a Secret.
	Values []Value `json:"values,omitempty"`
	// Unknown is why the keys are not known, empty if they are.
	Unknown string `json:"unknown,omitempty"`
}

// Value is one key of a ConfigMap that differs. A value that does not exist is nil.
type Value struct {
	Key  string  `json:"key"`
	From *string `json:"from"`
	To   *string `json:"to"`
}

// Differ compares contents by their snapshots.
type Differ struct {
	Reader    client.Reader
	Namespace string
	// Values is true if the values of ConfigMaps are to be shown.
	Values bool
}

// Pins compares the objects of two lists of pins, and leaves out those with the same content.
func (d *Differ) Pins(ctx context.Context, from, to pin.Pins) ([]Difference, error) {
	all := slices.Concat(from, to)
	found := []Difference{}
	for i, p := range all {
		before, had := from.Of(p.Kind, p.Name)
		after, has := to.Of(p.Kind, p.Name)
		if i >= len(from) && had || had && has && before == after {
			continue
		}
		if !had {
			before = pin.Pin{Kind: p.Kind, Name: p.Name, Digest: pin.Absent}
		}
		if !has {
			after = pin.Pin{Kind: p.Kind, Name: p.Name, Digest: pin.Absent}
		}
		one, err := d.Object(ctx, before, after)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

// Object compares two contents of one object.
func (d *Differ) Object(ctx context.Context, from, to pin.Pin) (Difference, error) {
	diff := Difference{Kind: from.Kind, Name: from.Name, From: from.Digest, To: to.Digest}
	before, err := d.read(ctx, from, &diff)
	if err != nil {
		return diff, err
	}
	after, err := d.read(ctx, to, &diff)
	if err != nil || diff.Unknown != "" {
		return diff, err
	}
	for _, key := range slices.Sorted(maps.Keys(merged(before, after))) {
		a, had := before[key]
		b, has := after[key]
		switch {
		case !had:
			diff.Added = append(diff.Added, key)
		case !has:
			diff.Removed = append(diff.Removed, key)
		case !bytes.Equal(a, b):
			diff.Changed = append(diff.Changed, key)
		default:
			continue
		}
		if d.Values && from.Kind == content.ConfigMap {
			diff.Values = append(diff.Values, Value{Key: key, From: text(a, had), To: text(b, has)})
		}
	}
	return diff, nil
}

// read reads a content: that of the snapshot, or of the object if it has the content now.
func (d *Differ) read(ctx context.Context, p pin.Pin, diff *Difference) (map[string][]byte, error) {
	none := map[string][]byte{}
	if !p.HasSnapshot() {
		return none, nil
	}
	for _, name := range []string{p.Snapshot(), p.Name} {
		obj := p.Kind.New()
		err := d.Reader.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: name}, obj)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("get %s %s: %w", p.Kind, name, err)
		}
		values := content.ValuesOf(obj)
		if name == p.Snapshot() {
			return values, nil
		}
		content.Digest(obj)
		o := content.Object{Kind: p.Kind, Namespace: d.Namespace, Name: p.Name}
		if PinOf(content.FactsOf(obj), o) == p {
			return values, nil
		}
	}
	diff.Unknown = fmt.Sprintf("%s %s, the snapshot of %s %s, not found", p.Kind, p.Snapshot(), p.Kind, p.Name)
	return none, nil
}

func merged(a, b map[string][]byte) map[string][]byte {
	all := map[string][]byte{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

func text(value []byte, exists bool) *string {
	if !exists {
		return nil
	}
	s := string(value)
	return &s
}
