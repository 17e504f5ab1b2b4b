package packages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
			Templates: p.Templates, Tasks: o.Tasks, Plans: o.Plans,
		},
	}
	for i := range p.Parameters {
		parameter, err := p.Parameters[i].Object()
		if err != nil {
			return nil, fmt.Errorf("%s: parameter %s: %w", filepath.Join(p.From, paramsFile), p.Parameters[i].Name, err)
		}
		v.Spec.Parameters = append(v.Spec.Parameters, parameter)
	}
	return v, nil
}

// Object is the parameter as an OperatorVersion has it: all values are text, and what says
// nothing is required.
func (p *Parameter) Object() (v1beta1.Parameter, error) {
	required := p.Required == nil || *p.Required
	o := v1beta1.Parameter{
		Name: p.Name, DisplayName: p.DisplayName, Description: p.Description, Required: &required,
		Trigger: p.Trigger, Type: p.Type, Immutable: p.Immutable,
	}
	if len(p.Default) > 0 && !bytes.Equal(p.Default, []byte("null")) {
		text, err := textOf(p.Default)
		if err != nil {
			return o, fmt.Errorf("default: %w", err)
		}
		o.Default = &text
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

// textOf is a value as text: that of a string without quotes, all else as JSON, which is
// also YAML.
func textOf(raw json.RawMessage) (string, error) {
	var text string
	if bytes.HasPrefix(raw, []byte(`"`)) {
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", fmt.Errorf("read the value: %w", err)
		}
		return text, nil
	}
	return string(raw), nil
}
