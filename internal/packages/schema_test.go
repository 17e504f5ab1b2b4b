package packages_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/spillway-dev/spillway/internal/packages"
)

// The schema is one for a validator, and its defaults are valid.
func TestSchema(t *testing.T) {
	params := `groups: [{name: nodes, displayName: Nodes}]
parameters:
- {name: TEXT, default: 3, immutable: true}
- {name: NODES, type: integer, default: "3", group: nodes, enum: [1, "3"], hint: odd}
- {name: RATIO, type: number, default: 0.5, group: nodes, advanced: true}
- {name: FLAG, type: boolean, default: no}
- {name: LIST, type: array, default: [a, 1], trigger: deploy}
- {name: MAP, type: map, default: {a: {b: c}}}
- {name: OTHER, type: quantity, required: false}
`
	p, err := packages.Load(archive(t, entry{name: "operator.yaml", text: operator}, entry{name: "params.yaml", text: params}))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := p.SchemaOf(p.Parameters)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("package.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("package.json")
	if err != nil {
		t.Fatal(err)
	}
	for values, isValid := range map[string]bool{
		defaults(t, schema): true,
		`{"TEXT": "a", "FLAG": true, "LIST": [], "MAP": {}, "nodes": {"NODES": 1, "RATIO": 2}}`: true,
		`{"TEXT": "a", "FLAG": true, "LIST": [], "MAP": {}}`:                                    true,
		`{"TEXT": "a", "FLAG": "no", "LIST": [], "MAP": {}}`:                                    false,
		`{"TEXT": "a", "FLAG": true, "LIST": {}, "MAP": {}}`:                                    false,
		`{"FLAG": true, "LIST": [], "MAP": {}}`:                                                 false,
		`{"TEXT": "a", "FLAG": true, "LIST": [], "MAP": {}, "nodes": {"NODES": 2, "RATIO": 2}}`: false,
		`{"TEXT": "a", "FLAG": true, "LIST": [], "MAP": {}, "nodes": {"NODES": 1}}`:             false,
	} {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(values)))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled.Validate(value); (err == nil) != isValid {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// defaults are the values of a schema where nothing is set.
func defaults(t *testing.T, schema *packages.Schema) string {
	t.Helper()
	values := map[string]json.RawMessage{}
	for name, s := range schema.Properties {
		if s.Properties != nil {
			values[name] = json.RawMessage(defaults(t, s))
		} else if s.Default != nil {
			values[name] = s.Default
		}
	}
	raw, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
