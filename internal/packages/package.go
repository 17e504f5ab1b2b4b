package packages

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/message"
)

// Package is an application in the format of KUDO.
type Package struct {
	// From is the folder or archive, as the user named it.
	From     string
	Operator Operator
	// Groups are headings for parameters.
	Groups     []Group
	Parameters []Parameter
	// Templates are by their path below templates/.
	Templates map[string]string

	files files
}

// Operator is operator.yaml.
type Operator struct {
	APIVersion        string                  `json:"apiVersion"`
	Name              string                  `json:"name"`
	Description       string                  `json:"description"`
	OperatorVersion   string                  `json:"operatorVersion"`
	AppVersion        string                  `json:"appVersion"`
	KudoVersion       string                  `json:"kudoVersion"`
	KubernetesVersion string                  `json:"kubernetesVersion"`
	Maintainers       []v1beta1.Maintainer    `json:"maintainers"`
	URL               string                  `json:"url"`
	NamespaceManifest string                  `json:"namespaceManifest"`
	Tasks             []v1beta1.Task          `json:"tasks"`
	Plans             map[string]v1beta1.Plan `json:"plans"`
	// Health is not KUDO's.
	Health []v1beta1.HealthRule `json:"health,omitempty"`
}

// Task is the task with a name, nil if there is none.
func (o *Operator) Task(name string) *v1beta1.Task {
	i := slices.IndexFunc(o.Tasks, func(t v1beta1.Task) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &o.Tasks[i]
}

// UsedBy are the templates and the package that a task is made of.
func UsedBy(t *v1beta1.Task) []string {
	all := append(slices.Clone(t.Spec.Resources), t.Spec.Chart, t.Spec.Values, t.Spec.Pod, t.Spec.Package)
	return slices.DeleteFunc(all, func(name string) bool { return name == "" })
}

// Group is a heading for parameters.
type Group struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	Description string `json:"description"`
	Priority    int    `json:"prio"`
}

// Parameter is one of params.yaml, whose values are as YAML has them, and not text as in
// an OperatorVersion.
type Parameter struct {
	Name        string                `json:"name"`
	DisplayName string                `json:"displayName,omitempty"`
	Description string                `json:"description,omitempty"`
	Required    *bool                 `json:"required,omitempty"`
	Default     json.RawMessage       `json:"default,omitempty"`
	Trigger     string                `json:"trigger,omitempty"`
	Type        v1beta1.ParameterType `json:"type,omitempty"`
	Immutable   *bool                 `json:"immutable,omitempty"`
	Enum        *[]json.RawMessage    `json:"enum,omitempty"`
	// Group is the heading, Advanced and Hint are for programs that show the parameters.
	Group    string `json:"group,omitempty"`
	Advanced bool   `json:"advanced,omitempty"`
	Hint     string `json:"hint,omitempty"`
}

// parameters is params.yaml.
type parameters struct {
	APIVersion string      `json:"apiVersion"`
	Groups     []Group     `json:"groups"`
	Parameters []Parameter `json:"parameters"`
}

func newPackage(from string, f files) (*Package, error) {
	p := &Package{From: from, Templates: map[string]string{}, files: f}
	raw, ok := f[operatorFile]
	if !ok {
		return nil, about(from, refuse("give the folder that has it", "has no %s", operatorFile))
	}
	if isFormer(raw) {
		return nil, about(fileIn(from, operatorFile), refuse("rename version to operatorVersion; tasks must be a list, each with name, kind and spec", "has the format of KUDO before 0.9"))
	}
	if err := decode(fileIn(from, operatorFile), raw, &p.Operator); err != nil {
		return nil, err
	}
	var params parameters
	if err := decode(fileIn(from, paramsFile), f[paramsFile], &params); err != nil {
		return nil, err
	}
	p.Groups, p.Parameters = params.Groups, params.Parameters
	for name, content := range f {
		if below, ok := strings.CutPrefix(name, templatesDir); ok {
			p.Templates[below] = string(content)
		}
	}
	return p, p.check()
}

// fieldName is the field of an operator.yaml, and of the objects that are made of it, with the name.
const fieldName = "name"

// check finds what the objects cannot be made without.
func (p *Package) check() error {
	var missing string
	switch {
	case p.Operator.Name == "":
		missing = fieldName
	case p.Operator.OperatorVersion == "":
		missing = "operatorVersion"
	default:
		if err := p.checkFields(); err != nil {
			return err
		}
		return p.checkNames()
	}
	return about(fileIn(p.From, operatorFile), refuse("set it", "has no %s", missing))
}

// checkFields refuses what no object and no archive can have in its name.
func (p *Package) checkFields() error {
	for _, field := range []struct{ name, value string }{
		{fieldName, p.Operator.Name}, {"operatorVersion", p.Operator.OperatorVersion}, {"appVersion", p.Operator.AppVersion},
	} {
		if why := content.IsPathSegmentName(field.value); len(why) > 0 {
			e := refuse("use letters, digits, - and .", "%s: invalid value %s: %s", field.name, message.Quote(field.value), why[0])
			if n := nodeAt(p.files[operatorFile], field.name); n != nil {
				e.Line = n.Line
			}
			return about(fileIn(p.From, operatorFile), e)
		}
	}
	return nil
}

// isOperator is true of an operator.yaml: a manifest of that name has a kind.
func isOperator(raw []byte) bool {
	var o struct{ Kind, OperatorVersion string }
	return yaml.Unmarshal(raw, &o) == nil && o.Kind == "" && o.OperatorVersion != ""
}

// wasOperator is true of an operator.yaml that is no YAML, as a mistake in it makes it.
func wasOperator(raw []byte) bool {
	var o map[string]any
	return yaml.Unmarshal(raw, &o) != nil && versionLine.Match(raw)
}

var versionLine = regexp.MustCompile(`(?m)^operatorVersion\s*:`)

// isFormer is true of an operator.yaml as KUDO had it before 0.9.
func isFormer(raw []byte) bool {
	var o struct{ Version, OperatorVersion string }
	var tasks struct{ Tasks map[string]any }
	isMap := yaml.Unmarshal(raw, &tasks) == nil && len(tasks.Tasks) > 0
	return isMap || yaml.Unmarshal(raw, &o) == nil && o.OperatorVersion == "" && o.Version != ""
}
