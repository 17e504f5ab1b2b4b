package packages

import (
	"encoding/json"
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/source"
)

// Values reads parameters of an Instance from YAML, with values as YAML has them, such as
// lists, and returns them as text, as an Instance has them.
func Values(raw []byte) (map[string]string, error) {
	var native map[string]json.RawMessage
	if err := checkKeys(raw); err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalStrict(raw, &native); err != nil {
		return nil, mistaken(err)
	}
	values := make(map[string]string, len(native))
	for name, value := range native {
		if string(value) == "null" {
			return nil, fmt.Errorf(`parameter %s has no value; set it, to "" if it is to be empty, or remove it`, name)
		}
		text, err := textOf(value)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", name, err)
		}
		values[name] = text
	}
	return values, nil
}

// mistaken is why a file of parameters cannot be read.
func mistaken(err error) error {
	line, problem := source.Locate(err)
	if line == 0 {
		return fmt.Errorf("must be a map of parameters in YAML: %s", problem)
	}
	return fmt.Errorf("line %d: must be a map of parameters in YAML: %s", line, problem)
}

// checkKeys refuses parameters whose names are not read as they are written.
func checkKeys(raw []byte) error {
	n := nodeAt(raw)
	for i := 0; n != nil && n.Kind == yamlv3.MappingNode && i < len(n.Content); i += 2 {
		if e := unquoted(n.Content[i]); e != nil {
			return fmt.Errorf("line %d: %s; %s", e.Line, e.Problem, e.Action)
		}
	}
	return nil
}
