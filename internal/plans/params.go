package plans

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// Problem is a mistake of a user, and how to fix it. Values of parameters may be
// secrets, so it never shows one.
type Problem struct {
	// Field is a field or an annotation of the Instance.
	Field string
	// Fix is what is wrong with it, and what to do.
	Action string
}

// String is the problem as a sentence.
func (p Problem) String() string { return p.Field + ": " + p.Action }

func sentences(problems []Problem) string {
	parts := make([]string, len(problems))
	for i, p := range problems {
		parts[i] = p.String()
	}
	return strings.Join(parts, "; ")
}

func parameterProblem(name, format string, args ...any) Problem {
	return Problem{Field: "spec.parameters." + name, Action: fmt.Sprintf(format, args...)}
}

// Values are the parameters as templates see them: all that the OperatorVersion
// has, each with the value that was set, or that it was created with if it cannot
// change, or its default. Only arrays and maps are parsed; all else is a string.
func Values(version *v1beta1.OperatorVersionSpec, set, immutable map[string]string) (map[string]any, []Problem) {
	values := make(map[string]any, len(version.Parameters))
	var problems []Problem
	for i := range version.Parameters {
		p := &version.Parameters[i]
		value, problem := valueOf(p, effective(p, set, immutable))
		if problem != nil {
			problems = append(problems, *problem)
		}
		values[p.Name] = value
	}
	return values, problems
}

// effective is the value of a parameter, nil if it has none.
func effective(p *v1beta1.Parameter, set, immutable map[string]string) *string {
	if value, ok := set[p.Name]; ok {
		return &value
	}
	if value, ok := immutable[p.Name]; ok && p.IsImmutable() {
		return &value
	}
	return p.Default
}

func valueOf(p *v1beta1.Parameter, value *string) (any, *Problem) {
	if value == nil || *value == "" {
		return empty(p, value), missing(p, value)
	}
	if problem := outsideEnum(p, *value); problem != nil {
		return *value, problem
	}
	parsed, action := parse(p.Type, *value)
	if action != "" {
		problem := parameterProblem(p.Name, "%s", action)
		return *value, &problem
	}
	return parsed, nil
}

// empty is what templates see of a parameter without a value.
func empty(p *v1beta1.Parameter, value *string) any {
	if value == nil && (p.Type == v1beta1.ArrayType || p.Type == v1beta1.MapType) {
		return nil
	}
	return ""
}

func missing(p *v1beta1.Parameter, value *string) *Problem {
	switch {
	case p.IsRequired() && p.Default == nil:
		problem := parameterProblem(p.Name, "is required; set it")
		return &problem
	case value != nil && p.Type != "" && p.Type != v1beta1.StringType:
		problem := parameterProblem(p.Name, "is empty, and has to be of type %s", p.Type)
		return &problem
	default:
		return nil
	}
}

func outsideEnum(p *v1beta1.Parameter, value string) *Problem {
	if p.Enum == nil || slices.Contains(*p.Enum, value) {
		return nil
	}
	problem := parameterProblem(p.Name, "has to be one of %s", strings.Join(*p.Enum, ", "))
	return &problem
}

// parse is a value as its type, or what it has to be.
func parse(t v1beta1.ParameterType, value string) (parsed any, action string) {
	switch t {
	case v1beta1.IntegerType:
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return nil, "has to be a whole number such as 3"
		}
	case v1beta1.NumberType:
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return nil, "has to be a number such as 0.5"
		}
	case v1beta1.BooleanType:
		if _, err := strconv.ParseBool(value); err != nil {
			return nil, "has to be true or false"
		}
	case v1beta1.ArrayType:
		list := []any{}
		if err := yaml.Unmarshal([]byte(value), &list); err != nil {
			return nil, "has to be a list in YAML such as [a, b]"
		}
		return list, ""
	case v1beta1.MapType:
		m := map[string]any{}
		if err := yaml.Unmarshal([]byte(value), &m); err != nil {
			return nil, "has to be a map in YAML such as {a: b}"
		}
		return m, ""
	}
	return value, ""
}

// parameter is the one of this name, nil if there is none.
func parameter(version *v1beta1.OperatorVersionSpec, name string) *v1beta1.Parameter {
	if version == nil {
		return nil
	}
	i := slices.IndexFunc(version.Parameters, func(p v1beta1.Parameter) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &version.Parameters[i]
}

// immutables are the values that must not change from now on: those that are set,
// those that were kept already, and the defaults of now.
func immutables(version *v1beta1.OperatorVersionSpec, set, kept map[string]string) map[string]string {
	var values map[string]string
	for i := range version.Parameters {
		p := &version.Parameters[i]
		value := effective(p, set, kept)
		if !p.IsImmutable() || value == nil {
			continue
		}
		if values == nil {
			values = map[string]string{}
		}
		values[p.Name] = *value
	}
	return values
}
