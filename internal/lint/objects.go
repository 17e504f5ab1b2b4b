package lint

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func manifestRules() []Rule { //nolint:dupl // tables of rules are alike but for their words
	return []Rule{
		{
			Code: "SPW901", Level: Error, Title: "A file that cannot be read as manifests",
			Why:    "What is in it was not looked at.",
			Action: "Correct it, or leave it out.", check: unreadFiles,
		},
		{
			Code: "SPW902", Level: Error, Title: "A field that the kind does not have, or a value of the wrong type",
			Why:    "The API server drops the field or refuses the object.",
			Action: "Correct the field.", check: unknownFields,
		},
		{
			Code: "SPW903", Level: Error, Title: "A value that the API server would refuse",
			Why:    "It does not fit the schema of the kind.",
			Action: "Correct the value.", check: refusedValues,
		},
		{
			Code: "SPW904", Level: Warning, Title: "A label or annotation that nothing reads",
			Why:    "It is written as one of Spillway's or of a predecessor's, and there is none of that name. It may be misspelled.",
			Action: "Fix the name, or take it out.", check: unknownKeys,
		},
		{
			Code: "SPW905", Level: Warning, Title: "A label or annotation in a place where nothing reads it",
			Why:    "Some are read as labels, some as annotations, and each on a few kinds only.",
			Action: "Move it to where it is read, or take it out.", check: misplacedKeys,
		},
		{
			Code: "SPW906", Level: Warning, Title: "Two names of one setting with different values",
			Why:    "The native name wins over that of a predecessor, and an annotation over a label.",
			Action: "Keep the one that is meant.", check: contradictingKeys,
		},
		{
			Code: "SPW907", Level: Warning, Title: "A label or annotation that does not belong in a manifest",
			Why:    "Spillway writes it by itself, or it is an order about something that runs. Each time the manifest is applied it is set back, and what it says is not true any more.",
			Action: "Take it out of the manifest.", check: writtenKeys,
		},
		{
			Code: "SPW908", Level: Error, Title: "The same object twice",
			Why:    "Whichever is applied last wins.",
			Action: "Keep one of them, or give one another name or namespace.", check: twice,
		},
		{
			Code: "SPW909", Level: Warning, Title: "An unknown code is to be ignored",
			Why:    "There is no such rule, so nothing is ignored.",
			Action: "Fix the code, or take it out; docs/lint.md lists all of them.", check: unknownCodes,
		},
		{
			Code: "SPW910", Level: Warning, Title: "A label or annotation with a value that has no meaning",
			Why:    "Only the values that are listed have one; any other is taken as if there were none.",
			Action: "Use one of the values that have a meaning.", check: strangeValues,
		},
	}
}

func unreadFiles(m *Manifests, r *reporter) {
	for _, e := range m.Unread {
		r.mistake(e, "")
	}
}

func unknownFields(m *Manifests, r *reporter) {
	for _, o := range m.Objects {
		for _, e := range o.Mistakes {
			if !o.ignores(r.rule.Code) {
				r.mistake(e, o.String())
			}
		}
	}
}

// refusedValues says nothing of what is of the wrong type, which is said already.
func refusedValues(m *Manifests, r *reporter) {
	for _, o := range m.Objects {
		if o.Typed == nil {
			continue
		}
		for _, refusal := range m.schemas.refusals(o) {
			r.findf(o, fields(refusal.field), "%s %s", refusal.field, refusal.reason)
		}
	}
}

func twice(m *Manifests, r *reporter) {
	type identity struct {
		schema.GroupKind
		namespace, name string
	}
	seen := map[identity]*Object{}
	for _, o := range m.Objects {
		key := identity{o.Object.GroupVersionKind().GroupKind(), o.namespace(), o.name()}
		if first := seen[key]; first != nil && o.is(v1alpha1.GroupVersion.Group, "RolloutGroup") && !sameSpec(first, o) {
			continue // which has a rule of its own
		} else if first != nil && o.name() != "" {
			r.findf(o, fields("metadata.name"), "it stands in %s:%d already", first.File, first.Line)
			continue
		}
		seen[key] = o
	}
}

// sameSpec is true of two objects that say the same, names apart.
func sameSpec(a, b *Object) bool {
	return equality.Semantic.DeepEqual(a.Object.Object["spec"], b.Object.Object["spec"])
}

func unknownCodes(m *Manifests, r *reporter) {
	for _, o := range m.Objects {
		for _, code := range o.ignored() {
			if ruleOf(code) == nil {
				r.findf(o, annotation(vocabulary.LintIgnore.Native), "there is no finding %s", code)
			}
		}
	}
}
