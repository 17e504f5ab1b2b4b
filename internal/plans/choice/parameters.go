package choice

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// Values are the parameters as templates see them: all of the OperatorVersion, each
// with the value that is set, or that it was created with if it is immutable, or its
// default. Only arrays and maps are parsed; the others are strings.
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
	if size := sizeOf(version, set, immutable); size > maxParameters {
		problems = append(problems, Problem{Field: "spec.parameters", Action: fmt.Sprintf(
			"are %d KiB long; must be at most %d KiB together; keep long values in a ConfigMap or a Secret", size>>10, maxParameters>>10)})
	}
	return values, problems
}

// CleanupParameters are those with which an Instance is cleaned up. Users can no longer
// fix them then, so if they are invalid, the ones that were last applied count.
func CleanupParameters(i *v1beta1.Instance, s *v1beta1.InstanceStatus, version *Version) map[string]string {
	applied := s.LastAppliedInstanceSpec
	_, problems := Values(version.Spec, i.Spec.Parameters, s.ImmutableParameters)
	if len(problems) == 0 || applied == nil {
		return maps.Clone(i.Spec.Parameters)
	}
	return maps.Clone(applied.Parameters)
}

// maxParameters is how long all parameters may be together. The status of the Instance has
// them up to four times, and the API server accepts no object of more than 1.5 MiB.
const maxParameters = 192 << 10

// sizeOf is how long the parameters are that a status keeps: those that are set, and those
// that are immutable. Each name counts twice, because managedFields has it too.
func sizeOf(version *v1beta1.OperatorVersionSpec, set, immutable map[string]string) int {
	size := 0
	for name, value := range set {
		size += 2*len(name) + len(value)
	}
	for i := range version.Parameters {
		p := &version.Parameters[i]
		if _, isSet := set[p.Name]; isSet || !p.IsImmutable() {
			continue
		}
		if value := effective(p, set, immutable); value != nil {
			size += 2*len(p.Name) + len(*value)
		}
	}
	return size
}

func valueOf(p *v1beta1.Parameter, value *string) (any, *Problem) {
	switch {
	case value == nil || *value == "":
		return empty(p, value), missing(p, value)
	case IsToken(*value):
		return *value, nil // only the controller knows what it stands for
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
		problem := parameterProblem(p.Name, "is empty; must be of type %s", p.Type)
		return &problem
	default:
		return nil
	}
}

func outsideEnum(p *v1beta1.Parameter, value string) *Problem {
	if p.Enum == nil || slices.Contains(*p.Enum, value) {
		return nil
	}
	problem := parameterProblem(p.Name, "must be one of %s", strings.Join(*p.Enum, ", "))
	return &problem
}

// maxStructured is how many bytes a list or a map may have as text. Parsed it may take a
// hundred times as much memory.
const maxStructured = 256 << 10

// parse converts a value to its type, or says what it must be.
func parse(t v1beta1.ParameterType, value string) (parsed any, action string) {
	if isStructured := t == v1beta1.ArrayType || t == v1beta1.MapType; isStructured && len(value) > maxStructured {
		return nil, "must be at most 256 KiB long"
	}
	switch t {
	case v1beta1.IntegerType:
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return nil, "must be an integer such as 3"
		}
	case v1beta1.NumberType:
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return nil, "must be a number such as 0.5"
		}
	case v1beta1.BooleanType:
		if _, err := strconv.ParseBool(value); err != nil {
			return nil, "must be true or false"
		}
	case v1beta1.ArrayType:
		list := []any{}
		if err := yaml.Unmarshal([]byte(value), &list); err != nil {
			return nil, "must be a list in YAML such as [a, b]"
		}
		return list, ""
	case v1beta1.MapType:
		m := map[string]any{}
		if err := yaml.Unmarshal([]byte(value), &m); err != nil {
			return nil, "must be a map in YAML such as {a: b}"
		}
		return m, ""
	}
	return value, ""
}

// parameter finds a parameter by its name, nil if there is none.
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

// Immutables are the values that must not change from now on: those that are set,
// those that were kept before, and the present defaults.
func Immutables(version *v1beta1.OperatorVersionSpec, set, kept map[string]string) map[string]string {
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
