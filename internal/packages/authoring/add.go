package authoring

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/packages"
)

const (
	operatorFile = "operator.yaml"
	paramsFile   = "params.yaml"
)

// Parameter is one to add. Fields that are not set are not written.
type Parameter struct {
	Name        string          `json:"name"`
	DisplayName string          `json:"displayName,omitempty"`
	Description string          `json:"description,omitempty"`
	Type        string          `json:"type,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
	Required    *bool           `json:"required,omitempty"`
	Immutable   *bool           `json:"immutable,omitempty"`
	Trigger     string          `json:"trigger,omitempty"`
	Enum        []string        `json:"enum,omitempty"`
}

// AddParameter adds a parameter to params.yaml.
func AddParameter(p *packages.Package, parameter *Parameter) error {
	if slices.ContainsFunc(p.Parameters, func(o packages.Parameter) bool { return o.Name == parameter.Name }) {
		return exists(p, "parameter", parameter.Name)
	}
	if _, ok := p.Operator.Plans[parameter.Trigger]; parameter.Trigger != "" && !ok {
		return missing("plan", parameter.Trigger)
	}
	raw := p.File(paramsFile)
	if raw == nil {
		raw = []byte("apiVersion: " + v1beta1.GroupVersion.String() + "\n")
	}
	return write(p, paramsFile, raw, func(raw []byte) ([]byte, error) { return appendItem(raw, "parameters", parameter) })
}

// AddTask adds a task to operator.yaml.
func AddTask(p *packages.Package, task *v1beta1.Task) error {
	if slices.ContainsFunc(p.Operator.Tasks, func(o v1beta1.Task) bool { return o.Name == task.Name }) {
		return exists(p, "task", task.Name)
	}
	for _, name := range append(slices.Clone(task.Spec.Resources), task.Spec.Pod, task.Spec.ParameterFile) {
		if _, ok := p.Templates[name]; name != "" && !ok {
			return fmt.Errorf("templates/%s not found; write it first", name)
		}
	}
	return write(p, operatorFile, p.File(operatorFile), func(raw []byte) ([]byte, error) { return appendItem(raw, "tasks", task) })
}

// AddPlan adds a plan to operator.yaml.
func AddPlan(p *packages.Package, name string, plan *v1beta1.Plan) error {
	if _, ok := p.Operator.Plans[name]; ok {
		return exists(p, "plan", name)
	}
	for i := range plan.Phases {
		for k := range plan.Phases[i].Steps {
			for _, task := range plan.Phases[i].Steps[k].Tasks {
				if !slices.ContainsFunc(p.Operator.Tasks, func(o v1beta1.Task) bool { return o.Name == task }) {
					return missing("task", task)
				}
			}
		}
	}
	return write(p, operatorFile, p.File(operatorFile), func(raw []byte) ([]byte, error) { return appendField(raw, "plans", name, plan) })
}

// AddMaintainer adds a maintainer to operator.yaml.
func AddMaintainer(p *packages.Package, maintainer v1beta1.Maintainer) error {
	if slices.Contains(p.Operator.Maintainers, maintainer) {
		return exists(p, "maintainer", maintainer.Name)
	}
	return write(p, operatorFile, p.File(operatorFile), func(raw []byte) ([]byte, error) { return appendItem(raw, "maintainers", maintainer) })
}

func exists(p *packages.Package, kind, name string) error {
	return fmt.Errorf("%s has the %s %s already; choose another name", p.From, kind, name)
}

func missing(kind, name string) error {
	return fmt.Errorf("%s %s not found; add it first with: spillway package add %s", kind, name, kind)
}

func write(p *packages.Package, file string, raw []byte, edit func([]byte) ([]byte, error)) error {
	after, err := edit(raw)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", p.From, file, err)
	}
	return p.Rewrite(map[string][]byte{file: after})
}
