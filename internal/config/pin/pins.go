package pin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/internal/config/content"
)

// DigestLength is how many digits of the digest of a content are in the name of its snapshot.
const DigestLength = 10

// Absent stands for the digest of an object that does not exist. No object is ever written
// for it: what is optional stays absent for the Pods of a revision.
const Absent = "absent"

// longestName is that of an object of which the snapshot has its whole name.
const longestName = 253 - 1 - DigestLength

// Most is how many pins a Pod template may have, and Longest how long their annotation may
// be. The API server bounds what a policy may cost, and refuses a Pod beyond that.
const (
	Most    = 500
	Longest = 32 << 10
)

// Pin is one object with one content.
type Pin struct {
	Kind         content.Kind
	Name, Digest string
}

// Pins are those of a Pod template, sorted by kind and name.
type Pins []Pin

// prefixes are how the annotation names kinds.
var prefixes = map[content.Kind]string{content.ConfigMap: "cm/", content.Secret: "secret/"}

// Parse reads the annotation. Like the policy, it refuses what is no pin, or is listed twice.
func Parse(text string) (Pins, error) {
	var pins Pins
	for entry := range strings.SplitSeq(text, ",") {
		p, ok := parse(entry)
		if !ok {
			return nil, fmt.Errorf("%q is no pin: must be cm/NAME=DIGEST or secret/NAME=DIGEST", entry)
		}
		pins = append(pins, p)
	}
	slices.SortFunc(pins, compare)
	for i := 1; i < len(pins); i++ {
		if compare(pins[i-1], pins[i]) == 0 {
			return nil, fmt.Errorf("%s%s is pinned twice", prefixes[pins[i].Kind], pins[i].Name)
		}
	}
	return pins, nil
}

// Mentioned are the pins in an annotation, without what is none: a snapshot is kept as long
// as something may refer to it.
func Mentioned(text string) Pins {
	var pins Pins
	for entry := range strings.SplitSeq(text, ",") {
		if p, ok := parse(entry); ok {
			pins = append(pins, p)
		}
	}
	return pins
}

func parse(entry string) (Pin, bool) {
	of, digest, found := strings.Cut(entry, "=")
	if !found || digest == "" || strings.Contains(digest, "=") {
		return Pin{}, false
	}
	for kind, prefix := range prefixes {
		if name, ok := strings.CutPrefix(of, prefix); ok && name != "" {
			return Pin{Kind: kind, Name: name, Digest: digest}, true
		}
	}
	return Pin{}, false
}

func compare(a, b Pin) int {
	return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Name, b.Name))
}

// String is the annotation.
func (p Pins) String() string {
	entries := make([]string, len(p))
	for i := range p {
		entries[i] = p[i].String()
	}
	return strings.Join(entries, ",")
}

// String is the pin as in the annotation.
func (p Pin) String() string { return prefixes[p.Kind] + p.Name + "=" + p.Digest }

// Of is the pin of an object, false if there is none.
func (p Pins) Of(kind content.Kind, name string) (Pin, bool) {
	i, found := slices.BinarySearchFunc(p, Pin{Kind: kind, Name: name}, compare)
	if !found {
		return Pin{}, false
	}
	return p[i], true
}

// Agree is true if no object has one content by these pins and another one by others.
func (p Pins) Agree(others Pins) bool {
	return !slices.ContainsFunc(others, func(o Pin) bool {
		mine, ok := p.Of(o.Kind, o.Name)
		return ok && mine.Digest != o.Digest
	})
}

// Fits is true if the API server applies so many pins to a Pod.
func (p Pins) Fits() bool { return len(p) <= Most && len(p.String()) <= Longest }

// HasSnapshot is false for the pin of an object that did not exist.
func (p Pin) HasSnapshot() bool { return p.Digest != Absent }

// Snapshot is the name of the snapshot.
func (p Pin) Snapshot() string { return SnapshotName(p.Name, p.Digest) }

// SnapshotIn is the snapshot, of a pin in a namespace.
func (p Pin) SnapshotIn(namespace string) content.Object {
	return content.Object{Kind: p.Kind, Namespace: namespace, Name: p.Snapshot()}
}

// SnapshotName is the name of the snapshot of an object with a content. Of a name that would
// be too long, the beginning remains: the digest tells objects apart as well.
func SnapshotName(name, digest string) string {
	if len(name) > longestName {
		name = strings.TrimSuffix(name[:longestName], ".") // no part of a name may begin with a dash
	}
	return name + "-" + digest
}

// ShortDigest are the digits of a digest that a pin has.
func ShortDigest(digest string) string { return digest[:min(len(digest), DigestLength)] }
