package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const interfaceFile = "testdata/interface.txt"

// What programs read is an interface: a field that another version has not, or has otherwise,
// breaks them (docs/adr/0048). A new one is added to the file.
func TestInterface(t *testing.T) {
	raw, err := os.ReadFile(interfaceFile)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	all, err := schemas()
	if err != nil {
		t.Fatal(err)
	}
	got, want := linesOf(all), strings.Split(strings.TrimSpace(string(raw)), "\n")
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("it is not any more: %s", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("it is new; add it to %s: %s", interfaceFile, line)
		}
	}
}

// linesOf are the fields of all schemas: "status Unit.phase string required".
func linesOf(all map[string]map[string]any) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		root := all[name]
		lines = append(lines, name+" is "+typeOf(root))
		definitions, _ := root["$defs"].(map[string]any)
		for _, of := range slices.Sorted(maps.Keys(definitions)) {
			definition, _ := definitions[of].(map[string]any)
			properties, _ := definition["properties"].(map[string]any)
			required, _ := definition["required"].([]any)
			for _, field := range slices.Sorted(maps.Keys(properties)) {
				schema, _ := properties[field].(map[string]any)
				line := fmt.Sprintf("%s %s.%s %s", name, of, field, typeOf(schema))
				if slices.Contains(required, any(field)) {
					line += " required"
				}
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// typeOf is a type in a word.
func typeOf(schema map[string]any) string {
	if items, ok := schema["items"].(map[string]any); ok {
		return "[]" + typeOf(items)
	}
	if ref, ok := schema["$ref"].(string); ok {
		return strings.TrimPrefix(ref, "#/$defs/")
	}
	if format, ok := schema["format"].(string); ok {
		return format
	}
	if name, ok := schema["type"].(string); ok {
		return name
	}
	return "any"
}
