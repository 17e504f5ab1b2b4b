package rules

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/nearest"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func manifestRules() []rule {
	return []rule{
		{report.Rule{
			Code: "SPW901", Level: report.Error, Title: "A file that cannot be read as manifests, or a package that cannot be read",
			Why:    "Its content was not checked.",
			Action: "Correct it, or leave it out.",
		}, unreadFiles},
		{report.Rule{
			Code: "SPW902", Level: report.Error, Title: "A field that the kind does not have, or a value of the wrong type",
			Why:    "The API server drops the field or refuses the object.",
			Action: "Correct the field.",
		}, unknownFields},
		{report.Rule{
			Code: "SPW903", Level: report.Error, Title: "A value that the API server would refuse",
			Why:    "It does not fit the schema of the kind.",
			Action: "Correct the value.",
		}, refusedValues},
		{report.Rule{
			Code: "SPW904", Level: report.Warning, Title: "A label or annotation that nothing reads",
			Why:    "Its domain is one of Spillway, wave, rollout-operator or KUDO, and none of them has a key of that name. It may be misspelled.",
			Action: "Fix the name, or remove it.",
		}, unknownKeys},
		{report.Rule{
			Code: "SPW905", Level: report.Warning, Title: "A label or annotation in a place where nothing reads it",
			Why:    "Some are read as labels, some as annotations, and each on a few kinds only.",
			Action: "Move it to where it is read, or remove it.",
		}, misplacedKeys},
		{report.Rule{
			Code: "SPW906", Level: report.Warning, Title: "Two names of one setting with different values",
			Why:    "The native name wins over an alias, and an annotation over a label.",
			Action: "Keep the one that is meant.",
		}, contradictingKeys},
		{report.Rule{
			Code: "SPW907", Level: report.Warning, Title: "A label or annotation that does not belong in a manifest",
			Why:    "Spillway writes it, or it is an order about a running plan. Each time the manifest is applied, the old value is written again.",
			Action: "Remove it from the manifest.",
		}, writtenKeys},
		{report.Rule{
			Code: "SPW908", Level: report.Error, Title: "The same object twice",
			Why:    "The one that is applied last wins.",
			Action: "Keep one of them, or give one another name or namespace.",
		}, twice},
		{report.Rule{
			Code: "SPW909", Level: report.Warning, Title: "An unknown code in the list of ignored codes",
			Why:    "There is no such rule, so nothing is ignored.",
			Action: "Fix the code, or remove it; docs/lint.md lists all of them.",
		}, unknownCodes},
		{report.Rule{
			Code: "SPW910", Level: report.Warning, Title: "A label or annotation with an invalid value",
			Why:    "Only the listed values have an effect; any other is ignored.",
			Action: "Use one of the listed values.",
		}, strangeValues},
		{report.Rule{
			Code: "SPW911", Level: report.Error, Title: "A misspelled kind, or a kind of another API version",
			Why:    "The API server refuses the object. Only groups of Kubernetes and Spillway are checked, and only for names that are nearly those of a kind: another name may be that of a newer one.",
			Action: "Correct the kind or the apiVersion.",
		}, misspelledKinds},
	}
}

// misspelledKinds finds kinds that a version of a known group does not have, and that were
// nearly certainly meant for one that exists.
func misspelledKinds(m *manifest.Manifests, r *reporter) {
	for _, o := range m.Objects {
		gvk := o.Object.GroupVersionKind()
		field, meant := kube.MeantKind(m.Scheme, gvk)
		if meant == "" {
			continue
		}
		r.findf(o, manifest.Fields(field), "%s has no kind %s", gvk.GroupVersion(), gvk.Kind)
		r.actionf("Did you mean %s %s?", field, meant)
	}
}

func unreadFiles(m *manifest.Manifests, r *reporter) {
	for _, e := range m.Unread {
		r.mistake(e, "")
	}
}

func unknownFields(m *manifest.Manifests, r *reporter) {
	for _, o := range m.Objects {
		for _, e := range o.Mistakes {
			if !o.Ignores(r.rule.Code) {
				r.mistake(ofFlux(o, e), o.String())
			}
		}
	}
}

// refusedValues says nothing of what is of the wrong type, which is said already, nor of the path
// by which a package names another one: it is installed with the name of that.
func refusedValues(m *manifest.Manifests, r *reporter) {
	for _, o := range m.Objects {
		if o.Typed == nil {
			continue
		}
		for _, refusal := range m.Schemas.Refusals(o) {
			if o.IsComposed() && strings.HasSuffix(refusal.Field, ".spec.package") {
				continue
			}
			r.findf(o, manifest.Fields(refusal.Field), "%s %s", refusal.Field, refusal.Reason)
		}
	}
}

// twice finds objects that overwrite one another. Those of two directories are most often
// variants, such as one for each environment, of which only one is applied.
func twice(m *manifest.Manifests, r *reporter) {
	type identity struct {
		schema.GroupKind
		namespace, name, directory string
	}
	seen := map[identity]*manifest.Object{}
	for _, o := range m.Objects {
		key := identity{o.Object.GroupVersionKind().GroupKind(), o.Namespace(), o.Name(), filepath.Dir(o.File)}
		if first := seen[key]; first != nil && o.Is(v1alpha1.GroupVersion.Group, "RolloutGroup") && !sameSpec(first, o) {
			continue // which has a rule of its own
		} else if first != nil && o.Name() != "" {
			r.findf(o, manifest.Fields("metadata.name"), "defined in %s:%d already", first.File, first.Line)
			continue
		}
		seen[key] = o
	}
}

// sameSpec is true of two objects that say the same, names apart.
func sameSpec(a, b *manifest.Object) bool {
	return equality.Semantic.DeepEqual(a.Object.Object["spec"], b.Object.Object["spec"])
}

func unknownCodes(m *manifest.Manifests, r *reporter) {
	for _, o := range m.Objects {
		for _, code := range o.Ignored() {
			if !isRule(code) {
				r.findf(o, manifest.Annotation(vocabulary.LintIgnore.Native), "unknown code %s", code)
			}
		}
	}
}

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
