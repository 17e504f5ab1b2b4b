package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/fluxspec"
)

// The overrides of a template are merged on the hub: what a cluster is assigned has them in it, and
// names them. So what it should have follows from its assignment alone. A cluster whose
// labels have changed is not taken for one whose assignment was edited.

// Variants are what a template is on different clusters. Each is worked out once; they are for
// one goroutine.
type Variants struct {
	template  *v1alpha1.TemplateSpec
	selectors []labels.Selector
	merged    map[string]*variant
}

// variant is a template with some overrides, and the hash of what it says.
type variant struct {
	template *v1alpha1.TemplateSpec
	content  string
}

// VariantsOf are those of a template.
func VariantsOf(t *v1alpha1.TemplateSpec) *Variants {
	v := &Variants{template: t, merged: map[string]*variant{}}
	for i := range t.Overrides {
		selector, err := metav1.LabelSelectorAsSelector(&t.Overrides[i].Clusters)
		if err != nil {
			selector = labels.Nothing() // which is one of [OverrideProblems]
		}
		v.selectors = append(v.selectors, selector)
	}
	return v
}

// Varies reports whether clusters may differ in what they are assigned.
func (v *Variants) Varies() bool { return v != nil && len(v.selectors) > 0 }

// For are the names of the overrides that match the labels of a cluster, in their order.
func (v *Variants) For(of map[string]string) []string {
	if !v.Varies() {
		return nil
	}
	var names []string
	for i, selector := range v.selectors {
		if selector.Matches(labels.Set(of)) {
			names = append(names, v.template.Overrides[i].Name)
		}
	}
	return names
}

// With is the template with the overrides of these names; a name that it does not have says nothing.
func (v *Variants) With(names []string) *v1alpha1.TemplateSpec {
	if len(names) == 0 {
		return v.template
	}
	return v.variant(names).template
}

// Content tells apart what different overrides come to.
func (v *Variants) Content(names []string) string { return v.variant(names).content }

func (v *Variants) variant(names []string) *variant {
	key := strings.Join(names, ",")
	found := v.merged[key]
	if found == nil {
		t := Overridden(v.template, names)
		plain := *t
		plain.Sync, plain.Overrides = Tidy(t.Sync), nil
		plain = normal(plain)
		found = &variant{template: t, content: Hash(plain)}
		v.merged[key] = found
	}
	return found
}

// Overridden is a template with some of its overrides merged, in the order in which it has them.
func Overridden(t *v1alpha1.TemplateSpec, names []string) *v1alpha1.TemplateSpec {
	merged := t.DeepCopy()
	for i := range t.Overrides {
		if o := &t.Overrides[i]; slices.Contains(names, o.Name) {
			override(merged, o.DeepCopy())
		}
	}
	return merged
}

func override(t *v1alpha1.TemplateSpec, o *v1alpha1.Override) {
	for _, b := range o.ControlPlaneBindings {
		i := slices.IndexFunc(t.ControlPlaneBindings, func(was v1alpha1.Binding) bool { return was.Name == b.Name })
		if i < 0 {
			t.ControlPlaneBindings = append(t.ControlPlaneBindings, b)
		} else {
			t.ControlPlaneBindings[i] = b
		}
	}
	if len(o.Patches) == 0 && fluxspec.IsEmpty(o.Values) {
		return
	}
	if t.Sync.Package == nil {
		t.Sync.Package = &v1alpha1.Package{}
	}
	p := t.Sync.Package
	if len(o.Patches) > 0 {
		if p.Kustomize == nil {
			p.Kustomize = &v1alpha1.Kustomize{}
		}
		p.Kustomize.Spec = withPatches(p.Kustomize.Spec, o.Patches)
	}
	if !fluxspec.IsEmpty(o.Values) {
		if p.Helm == nil {
			p.Helm = &v1alpha1.Helm{}
		}
		p.Helm.Values = encoded(merge(decoded(p.Helm.Values), decoded(o.Values)))
	}
}

// withPatches is what is handed to a Kustomization, with more patches.
func withPatches(spec *runtime.RawExtension, patches []v1alpha1.Patch) *runtime.RawExtension {
	fields := decoded(spec)
	all, _ := fields["patches"].([]any)
	for _, p := range patches {
		all = append(all, p)
	}
	fields["patches"] = all
	return encoded(fields)
}

// merge puts values in the place of others, as Helm does: also nothing, which takes away what
// the chart itself has there.
func merge(into, values map[string]any) map[string]any {
	for key, value := range values {
		was, isObject := into[key].(map[string]any)
		if is, also := value.(map[string]any); isObject && also {
			value = merge(was, is)
		}
		into[key] = value
	}
	return into
}

// decoded are the fields of an object, none of what is no object: that is one of [fluxspec.Problems].
func decoded(raw *runtime.RawExtension) map[string]any {
	fields := map[string]any{}
	if fluxspec.IsEmpty(raw) || utiljson.Unmarshal(raw.Raw, &fields) != nil || fields == nil {
		return map[string]any{}
	}
	return fields
}

func encoded(fields map[string]any) *runtime.RawExtension {
	raw, err := json.Marshal(fields)
	if err != nil {
		raw = []byte("{}") // what was decoded can be encoded
	}
	return &runtime.RawExtension{Raw: raw}
}

// maxBindings is how many bindings an assemblage accepts.
const maxBindings = 64

// OverrideProblems are the mistakes in the overrides of a template, each of which begins with its
// field. The path is that of the template.
func OverrideProblems(path string, t *v1alpha1.TemplateSpec) []string {
	if len(t.Overrides) == 0 {
		return nil
	}
	var problems, names []string
	isChart := fluxspec.HelmOf(t.Sync.Source, t.Sync.Package) != nil
	for i := range t.Overrides {
		o := &t.Overrides[i]
		field := fmt.Sprintf("%s.overrides[%d].", path, i)
		if _, err := metav1.LabelSelectorAsSelector(&o.Clusters); err != nil {
			problems = append(problems, field+"clusters: "+err.Error())
		}
		switch {
		case len(o.Patches) > 0 && isChart:
			problems = append(problems, field+"patches: a chart has none; use values, or postRenderers in package.helm.spec")
		case !fluxspec.IsEmpty(o.Values) && !isChart:
			problems = append(problems, field+"values: only a chart has them; use patches, or controlPlaneBindings with package.kustomize.substitute")
		case !fluxspec.IsEmpty(o.Values) && json.Unmarshal(o.Values.Raw, &map[string]json.RawMessage{}) != nil:
			problems = append(problems, field+"values: not an object")
		}
		names = append(names, o.Name)
	}
	if n := len(Overridden(t, names).ControlPlaneBindings); n > maxBindings {
		problems = append(problems, fmt.Sprintf("%s.overrides: with those of the template there are %d controlPlaneBindings, more than %d", path, n, maxBindings))
	}
	return problems
}
