package lint

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// use is one of our keys where it stands on an object.
type use struct {
	vocabulary.Entry

	name, value string
	place       vocabulary.Place
	path        []string
}

// keys are the labels and annotations of an object, those of its Pods last.
func (o *Object) keys() []use {
	uses := slices.Concat(
		usesIn(o.Object.GetAnnotations(), vocabulary.Annotation, []string{"metadata", "annotations"}),
		usesIn(o.Object.GetLabels(), vocabulary.Label, []string{"metadata", "labels"}),
	)
	if template, path := o.pods(); template != nil && path != nil {
		uses = append(uses, usesIn(template.Annotations, vocabulary.Template, append(slices.Clone(path), "metadata", "annotations"))...)
	}
	return uses
}

func usesIn(values map[string]string, place vocabulary.Place, path []string) []use {
	var uses []use
	for _, name := range sortedKeys(values) {
		uses = append(uses, use{Entry: entries()[name], name: name, value: values[name], place: place, path: append(slices.Clone(path), name)})
	}
	return uses
}

// isOurs is true of a name that the vocabulary has.
func (u *use) isOurs() bool { return u.Native != "" }

// entries are the keys of the vocabulary, by all of their names.
var entries = sync.OnceValue(func() map[string]vocabulary.Entry {
	found := map[string]vocabulary.Entry{}
	for _, e := range vocabulary.Catalogue() {
		for _, name := range e.Names() {
			found[name] = e
		}
	}
	return found
})

// ownDomains are those in which every key is known: Spillway's, and that of a
// predecessor who had no others.
var ownDomains = []string{"spillway.dev", "wave.pusher.com"}

// foreignDomains are those of which others have keys as well: there, only what is
// nearly one that is known was meant for it.
var foreignDomains = []string{"grafana.com", "kudo.dev"}

// isUnknown is true of a name that nothing reads and that was meant for Spillway or
// a predecessor: because of its domain, or because it is nearly one that is known.
func isUnknown(u *use) bool {
	if u.isOurs() {
		return false
	}
	domain, _, _ := strings.Cut(u.name, "/")
	if slices.Contains(ownDomains, domain) || strings.HasSuffix(domain, "."+ownDomains[0]) {
		return true
	}
	if !slices.Contains(foreignDomains, domain) {
		return false
	}
	_, distance := nearest(u.name)
	return distance <= 2
}

func unknownKeys(m *Manifests, r *reporter) {
	for _, o := range m.Objects {
		for _, u := range o.keys() {
			if !isUnknown(&u) {
				continue
			}
			r.findf(o, u.path, "nothing reads the %s %s", where(u.place), u.name)
			if near, distance := nearest(u.name); distance <= len(u.name)/3 {
				r.mendf("Did you mean %s? Else take it out.", near)
			}
		}
	}
}

// where is a place in a sentence.
func where(p vocabulary.Place) string {
	if p == vocabulary.Label {
		return "label"
	}
	return "annotation"
}

// nearest is the known name that is most like another, and how many letters differ.
func nearest(name string) (near string, distance int) {
	distance = len(name) + 1
	for _, known := range sortedKeys(entries()) {
		if d := difference(name, known); d < distance {
			near, distance = known, d
		}
	}
	return near, distance
}

// difference is how many letters have to be put in, taken out or replaced to make
// one text the other.
func difference(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j]+1, row[j+1]+1, replaced)
		}
	}
	return row[len(b)]
}

// misplacedKeys finds keys among the labels that are read as annotations, the other
// way round, and on kinds on which nothing reads them.
func misplacedKeys(m *Manifests, r *reporter) {
	for _, o := range m.Objects {
		for _, u := range o.keys() {
			if !u.isOurs() || u.Written {
				continue
			}
			switch {
			case !isPlaced(&u):
				r.findf(o, u.path, "%s stands among the %s, and is read among the %s", u.name, among(u.place), among(u.Place))
				r.mendf("Move it to the %s.", among(u.Place))
			case u.place == vocabulary.Annotation && u.Kinds != nil && !slices.Contains(u.Kinds, o.kind()):
				r.findf(o, u.path, "%s means nothing on a %s", u.name, o.kind())
				r.mendf("Move it to the %s that is meant, or take it out.", strings.Join(u.Kinds, " or "))
			}
		}
	}
}

// isPlaced is true of a key that stands where it is read. The Pods of a group may well
// have its label, and so may a Service.
func isPlaced(u *use) bool {
	return u.place == u.Place || u.Place == vocabulary.Either && u.place != vocabulary.Template || u.Kinds == nil && u.place == vocabulary.Template
}

// among is a place as many.
func among(p vocabulary.Place) string {
	switch p {
	case vocabulary.Either:
		return "labels or annotations"
	case vocabulary.Template:
		return "annotations of the Pod template"
	default:
		return string(p) + "s"
	}
}

// contradictingKeys finds keys that stand there under two names, or as label and as
// annotation, with different values.
func contradictingKeys(m *Manifests, r *reporter) {
	for _, o := range m.Objects {
		uses := slices.DeleteFunc(o.keys(), func(u use) bool { return !u.isOurs() || u.place == vocabulary.Template })
		for i, u := range uses {
			for _, other := range uses[:i] {
				if !u.contradicts(&other) {
					continue
				}
				wins := winner(&u, &other)
				r.findf(o, u.path, "%s %s is %q, and %s %s is %q; the %s %s counts",
					where(other.place), other.name, other.value, where(u.place), u.name, u.value, where(wins.place), wins.name)
			}
		}
	}
}

// contradicts is true of two that are read for the same setting, and differ.
func (u *use) contradicts(other *use) bool {
	return u.Native == other.Native && u.value != other.value && (u.Place == vocabulary.Either || u.place == other.place)
}

// winner is the one of two that counts: an annotation, and the native name.
func winner(u, other *use) *use {
	if u.place == other.place && u.name == u.Native {
		return u
	}
	return other // annotations come first
}

// writtenKeys finds what Spillway writes by itself, and what somebody orders once.
func writtenKeys(m *Manifests, r *reporter) {
	for _, o := range m.Objects {
		for _, u := range o.keys() {
			switch {
			case u.Written:
				r.findf(o, u.path, "%s is written by Spillway", u.name)
			case u.Order:
				r.findf(o, u.path, "%s is an order about one execution of a plan", u.name)
			}
		}
	}
}

// strangeValues finds values that are not among the few that a key may have, where
// no ring says so by itself.
func strangeValues(m *Manifests, r *reporter) {
	judged := []vocabulary.Key{
		vocabulary.ConfigTracked, vocabulary.ImagePullSecrets, vocabulary.RolloutPaused, vocabulary.PrepareDownscaleScheme,
	}
	for _, o := range m.Objects {
		for _, u := range o.keys() {
			byRing := slices.ContainsFunc(judged, func(k vocabulary.Key) bool { return k.Native == u.Native }) ||
				u.Native == vocabulary.Paused.Native && o.canTrack()
			if u.Values == nil || byRing || slices.Contains(u.Values, u.value) {
				continue
			}
			r.findf(o, u.path, "%s is %q, and has to be %s", u.name, u.value, quoted(u.Values))
		}
	}
}

func quoted(values []string) string {
	var parts []string
	for _, v := range values {
		parts = append(parts, fmt.Sprintf("%q", v))
	}
	return strings.Join(parts, " or ")
}
