package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/nearest"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// ownDomains are those in which every key is known: Spillway's, and that of wave, which
// had no others.
var ownDomains = []string{"spillway.dev", "wave.pusher.com"}

// foreignDomains are those of which others have keys as well: there, only what is
// nearly one that is known was meant for it.
var foreignDomains = []string{"grafana.com", "kudo.dev"}

func unknownKeys(m *manifest.Manifests, r *reporter) {
	for _, o := range m.Objects {
		for _, u := range o.Keys() {
			if !isUnknown(&u) {
				continue
			}
			r.findf(o, u.Path, "nothing reads the %s %s", where(u.At), u.Name)
			if key, distance := near(u.Name); distance <= len(u.Name)/3 {
				r.actionf("Did you mean %s? Otherwise remove it.", key)
			}
		}
	}
}

// isUnknown is true of a name that nothing reads and that was meant for Spillway, wave,
// rollout-operator or KUDO: because of its domain, or because it is nearly one that is known.
func isUnknown(u *manifest.KeyUse) bool {
	if u.IsOurs() {
		return false
	}
	domain, _, _ := strings.Cut(u.Name, "/")
	if slices.Contains(ownDomains, domain) || strings.HasSuffix(domain, "."+ownDomains[0]) {
		return true
	}
	if !slices.Contains(foreignDomains, domain) {
		return false
	}
	_, distance := near(u.Name)
	return distance <= 2
}

// near is the known key that is most like another, and how many letters differ.
func near(name string) (key string, distance int) {
	return nearest.Of(name, manifest.SortedKeys(manifest.Entries()))
}

// misplacedKeys finds keys among the labels that are read as annotations, the other
// way round, and on kinds on which nothing reads them.
func misplacedKeys(m *manifest.Manifests, r *reporter) {
	for _, o := range m.Objects {
		for _, u := range o.Keys() {
			if !u.IsOurs() || u.Written {
				continue
			}
			switch {
			case !isPlaced(&u):
				r.findf(o, u.Path, "%s is among the %s, and is read among the %s", u.Name, among(u.At), among(u.Place))
				r.actionf("Move it to the %s.", among(u.Place))
			case u.At == vocabulary.Annotation && u.Kinds != nil && !slices.Contains(u.Kinds, o.Kind()):
				said, instead := vocabulary.HasNoEffect(u.Name, o.Kind(), u.Kinds)
				r.findf(o, u.Path, "%s", said)
				r.actionf("%s", instead)
			}
		}
	}
}

// isPlaced is true of a key that stands where it is read. The Pods of a group may well
// have its label, and so may a Service.
func isPlaced(u *manifest.KeyUse) bool {
	return u.At == u.Place || u.Place == vocabulary.Either && u.At != vocabulary.Template || u.Kinds == nil && u.At == vocabulary.Template
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
func contradictingKeys(m *manifest.Manifests, r *reporter) {
	for _, o := range m.Objects {
		uses := slices.DeleteFunc(o.Keys(), func(u manifest.KeyUse) bool { return !u.IsOurs() || u.At == vocabulary.Template })
		for i, u := range uses {
			for _, other := range uses[:i] {
				if !contradict(&u, &other) {
					continue
				}
				wins := winner(&u, &other)
				r.findf(o, u.Path, "%s %s is %q, and %s %s is %q; the %s %s is used",
					where(other.At), other.Name, other.Value, where(u.At), u.Name, u.Value, where(wins.At), wins.Name)
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

// contradict is true of two keys that are read for the same setting, and differ.
func contradict(u, other *manifest.KeyUse) bool {
	return u.Native == other.Native && u.Value != other.Value && (u.Place == vocabulary.Either || u.At == other.At)
}

// winner is the one of two that counts: an annotation, and the native name.
func winner(u, other *manifest.KeyUse) *manifest.KeyUse {
	if u.At == other.At && u.Name == u.Native {
		return u
	}
	return other // annotations come first
}

// writtenKeys finds what Spillway writes itself, and what a user orders once.
func writtenKeys(m *manifest.Manifests, r *reporter) {
	for _, o := range m.Objects {
		for _, u := range o.Keys() {
			switch {
			case u.Written:
				r.findf(o, u.Path, "%s is written by Spillway", u.Name)
			case u.Order:
				r.findf(o, u.Path, "%s is an order about one execution of a plan", u.Name)
			}
		}
	}
}

// strangeValues finds values that are not among the few that a key may have, where
// no ring reports it.
func strangeValues(m *manifest.Manifests, r *reporter) {
	judged := []vocabulary.Key{
		vocabulary.ConfigTracked, vocabulary.ImagePullSecrets, vocabulary.RolloutPaused, vocabulary.PrepareDownscaleScheme,
	}
	for _, o := range m.Objects {
		for _, u := range o.Keys() {
			byRing := slices.ContainsFunc(judged, func(k vocabulary.Key) bool { return k.Native == u.Native }) ||
				u.Native == vocabulary.Paused.Native && o.CanTrack()
			if u.Values == nil || byRing || slices.Contains(u.Values, u.Value) {
				continue
			}
			r.findf(o, u.Path, "%s: invalid value %q: must be %s", u.Name, u.Value, quoted(u.Values))
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
