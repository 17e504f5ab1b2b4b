package packages

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// Values reads parameters of an Instance from YAML, with values as YAML has them, such as
// lists, and returns them as text, as an Instance has them.
func Values(raw []byte) (map[string]string, error) {
	var native map[string]json.RawMessage
	if err := yaml.UnmarshalStrict(raw, &native); err != nil {
		return nil, fmt.Errorf("must be a map of parameters in YAML: %w", err)
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
