package packages

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// VersionName is the name of the OperatorVersion: OPERATOR-[APPVERSION-]VERSION.
func (p *Package) VersionName() string {
	if p.Operator.AppVersion == "" {
		return p.Operator.Name + "-" + p.Operator.OperatorVersion
	}
	return p.Operator.Name + "-" + p.Operator.AppVersion + "-" + p.Operator.OperatorVersion
}

// OperatorObject is the Operator that is installed.
func (p *Package) OperatorObject() *v1beta1.Operator {
	o := &p.Operator
	return &v1beta1.Operator{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "Operator"},
		ObjectMeta: metav1.ObjectMeta{Name: o.Name},
		Spec: v1beta1.OperatorSpec{
			Description: o.Description, KudoVersion: o.KudoVersion, KubernetesVersion: o.KubernetesVersion,
			Maintainers: o.Maintainers, URL: o.URL, NamespaceManifest: o.NamespaceManifest,
		},
	}
}

// VersionObject is the OperatorVersion that is installed. The error names the parameter that
// is wrong.
func (p *Package) VersionObject() (*v1beta1.OperatorVersion, error) {
	o := &p.Operator
	v := &v1beta1.OperatorVersion{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "OperatorVersion"},
		ObjectMeta: metav1.ObjectMeta{Name: p.VersionName()},
		Spec: v1beta1.OperatorVersionSpec{
			Operator: v1beta1.ObjectReference{Kind: "Operator", Name: o.Name}, Version: o.OperatorVersion, AppVersion: o.AppVersion,
			Templates: p.Templates, Tasks: o.Tasks, Plans: o.Plans, Health: o.Health,
		},
	}
	for i := range p.Parameters {
		parameter, err := p.Parameters[i].Object()
		if err != nil {
			return nil, about(fileIn(p.From, paramsFile), refuse("correct the value", "parameter %s: %v", p.Parameters[i].Name, err))
		}
		v.Spec.Parameters = append(v.Spec.Parameters, parameter)
	}
	return v, nil
}

// MustBeSet is true of a parameter that each Instance has to set.
func (p *Parameter) MustBeSet() bool {
	return (p.Required == nil || *p.Required) && !p.hasDefault() && !p.isStructured()
}

// isStructured is true of a list or a map: without a default it is empty, as in KUDO.
func (p *Parameter) isStructured() bool {
	return p.Type == v1beta1.ArrayType || p.Type == v1beta1.MapType
}

// noItems is the default with which KUDO writes a list or a map that has none.
const noItems = "null\n"

func (p *Parameter) hasDefault() bool {
	return len(p.Default) > 0 && !bytes.Equal(p.Default, []byte("null"))
}

// Object is the parameter as an OperatorVersion has it: all values are text, and what says
// nothing is required.
func (p *Parameter) Object() (v1beta1.Parameter, error) {
	required := p.Required == nil || *p.Required
	o := v1beta1.Parameter{
		Name: p.Name, DisplayName: p.DisplayName, Description: p.Description, Required: &required,
		Trigger: p.Trigger, Type: p.Type, Immutable: p.Immutable,
	}
	switch {
	case p.hasDefault():
		text, err := textOf(p.Default)
		if err != nil {
			return o, fmt.Errorf("default: %w", err)
		}
		o.Default = &text
	case p.isStructured():
		o.Default = new(noItems)
	}
	if p.Enum == nil {
		return o, nil
	}
	values := make([]string, len(*p.Enum))
	for i, raw := range *p.Enum {
		var err error
		if values[i], err = textOf(raw); err != nil {
			return o, fmt.Errorf("enum: %w", err)
		}
	}
	o.Enum = &values
	return o, nil
}

// textOf is a value as text, as KUDO writes it: that of a string without quotes, a list or a
// map as YAML, all else as JSON, which is also YAML.
func textOf(raw json.RawMessage) (string, error) {
	var text string
	switch {
	case bytes.HasPrefix(raw, []byte(`"`)):
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", fmt.Errorf("read the value: %w", err)
		}
		return text, nil
	case bytes.HasPrefix(raw, []byte("[")), bytes.HasPrefix(raw, []byte("{")):
		structured, err := yaml.JSONToYAML(raw)
		if err != nil {
			return "", fmt.Errorf("read the value: %w", err)
		}
		return string(structured), nil
	default:
		return string(raw), nil
	}
}

// SameContent is true of two OperatorVersions that mean the same, however the values of their
// parameters are written in YAML: what KUDO has installed is not another version.
func SameContent(a, b *v1beta1.OperatorVersionSpec) bool {
	return equality.Semantic.DeepEqual(canonical(a), canonical(b))
}

// canonical is an OperatorVersion with one spelling for each value.
func canonical(spec *v1beta1.OperatorVersionSpec) *v1beta1.OperatorVersionSpec {
	spec = spec.DeepCopy()
	for i := range spec.Parameters {
		p := &spec.Parameters[i]
		if p.Type == "" || p.Type == v1beta1.StringType {
			continue
		}
		if p.Default != nil {
			*p.Default = spelling(*p.Default)
		}
		if p.Enum != nil {
			for k := range *p.Enum {
				(*p.Enum)[k] = spelling((*p.Enum)[k])
			}
		}
	}
	return spec
}

// spelling is a value as JSON, and what is no YAML as it is.
func spelling(value string) string {
	if text, err := yaml.YAMLToJSON([]byte(value)); err == nil {
		return string(text)
	}
	return value
}
