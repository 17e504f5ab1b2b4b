// Package schemas says whether what the program answers is as its published schemas say.
package schemas

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Check is what is wrong with an answer by one of the schemas in a folder, nil if nothing is.
// Fields that the schema does not know are wrong, too: they are not published.
func Check(folder, name string, answer []byte) error {
	raw, err := os.ReadFile(filepath.Join(folder, name+".json"))
	if err != nil {
		return fmt.Errorf("read the schema: %w", err)
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("read the schema %s: %w", name, err)
	}
	closeAll(schema)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource(name, schema); err != nil {
		return fmt.Errorf("schema %s: %w", name, err)
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return fmt.Errorf("schema %s: %w", name, err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer))
	if err != nil {
		return fmt.Errorf("it is no JSON: %w", err)
	}
	if err := compiled.Validate(value); err != nil {
		return fmt.Errorf("by the schema %s: %w", name, err)
	}
	return nil
}

// closeAll has definitions allow no fields but their own.
func closeAll(schema any) {
	root, _ := schema.(map[string]any)
	definitions, _ := root["$defs"].(map[string]any)
	for _, d := range definitions {
		if of, ok := d.(map[string]any); ok {
			of["additionalProperties"] = false
		}
	}
}
