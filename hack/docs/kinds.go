package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const kindsPreface = `# Kinds

<!-- Generated from the CustomResourceDefinitions by make generate; edit the comments of the types in api. -->

Print the definitions that an installation has:

` + "```sh" + `
spillway install --export --rings=config,zones,plans,fleet,assemblage | grep -c '^kind: CustomResourceDefinition'
` + "```" + `

A field marked with * is required.
` + "`[]`" + ` stands for an entry of a list, and ` + "`{}`" + ` for a value of a map.

`

// kindParts are the rings by which the kinds are sorted, with the folders of their
// definitions.
var kindParts = []struct{ folder, title string }{
	{"config", "Config changes"}, {"zones", "Zones"}, {"plans", "Plans"}, {"fleet", "Fleet"}, {"assemblage", "Clusters of a fleet"},
}

// kindsPage is docs/kinds.md.
func kindsPage(dir string) ([]byte, error) {
	var contents, body bytes.Buffer
	for _, part := range kindParts {
		paths, err := filepath.Glob(filepath.Join(dir, part.folder, "*_*.yaml"))
		if err != nil {
			return nil, fmt.Errorf("list the kinds: %w", err)
		}
		for _, path := range paths {
			crd, err := readKind(path)
			if err != nil {
				return nil, err
			}
			kind := crd.Spec.Names.Kind
			fmt.Fprintf(&contents, "- %s: [%s](#%s)\n", part.title, kind, strings.ToLower(kind))
			for _, v := range crd.Spec.Versions {
				writeKind(&body, crd, v)
			}
		}
	}
	return slices.Concat([]byte(kindsPreface), contents.Bytes(), body.Bytes()), nil
}

func readKind(path string) (*apiextensionsv1.CustomResourceDefinition, error) {
	text, err := os.ReadFile(path) //nolint:gosec // a file of the repository
	if err != nil {
		return nil, fmt.Errorf("read a kind: %w", err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return crd, nil
}

// writeKind writes the section of a kind.
func writeKind(b *bytes.Buffer, crd *apiextensionsv1.CustomResourceDefinition, v apiextensionsv1.CustomResourceDefinitionVersion) {
	names, schema := crd.Spec.Names, v.Schema.OpenAPIV3Schema
	fmt.Fprintf(b, "\n## %s\n\n`%s/%s`, %s", names.Kind, crd.Spec.Group, v.Name, strings.ToLower(string(crd.Spec.Scope)))
	if len(names.ShortNames) > 0 {
		fmt.Fprintf(b, "; short: %s", codes(names.ShortNames))
	}
	fmt.Fprintf(b, "\n\n%s\n\n| Field | Type | Meaning |\n|---|---|---|\n", paragraphs(schema.Description))
	var rules []string
	for _, name := range fieldNames(schema) {
		if slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) {
			continue
		}
		field := schema.Properties[name]
		writeField(b, name, slices.Contains(schema.Required, name), &field, &rules)
	}
	if len(rules) > 0 {
		fmt.Fprintf(b, "\nThe API server refuses other values:\n\n- %s\n", strings.Join(rules, "\n- "))
	}
}

// paragraphs is a description with its paragraphs, each in one line.
func paragraphs(text string) string {
	var lines []string
	for p := range strings.SplitSeq(text, "\n\n") {
		lines = append(lines, strings.ReplaceAll(cell(p), `\|`, "|"))
	}
	return strings.Join(lines, "\n\n")
}

// fieldNames are the fields of a schema: spec before status, otherwise by name.
func fieldNames(s *apiextensionsv1.JSONSchemaProps) []string {
	var names []string
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.SortFunc(names, cmp.Compare)
	return names
}

// writeField writes the row of a field, and those of the fields in it. The fields of
// conditions and of label selectors are the same everywhere, and left out.
func writeField(b *bytes.Buffer, path string, required bool, s *apiextensionsv1.JSONSchemaProps, rules *[]string) {
	mark := ""
	if required {
		mark = " *"
	}
	fmt.Fprintf(b, "| `%s`%s | %s | %s |\n", path, mark, typeOf(s), cell(s.Description)+limits(s))
	for _, r := range s.XValidations {
		if r.Message != "" {
			*rules = append(*rules, "`"+path+"`: "+cell(r.Message))
		}
	}
	for s.Items != nil || s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		if s.Items != nil {
			path, s = path+"[]", s.Items.Schema
		} else {
			path, s = path+"{}", s.AdditionalProperties.Schema
		}
	}
	if strings.HasSuffix(path, ".conditions[]") || isSelector(s) {
		return
	}
	for _, name := range fieldNames(s) {
		field := s.Properties[name]
		writeField(b, path+"."+name, slices.Contains(s.Required, name), &field, rules)
	}
}

// isSelector is true of a label selector.
func isSelector(s *apiextensionsv1.JSONSchemaProps) bool {
	return len(s.Properties["matchExpressions"].Type) > 0 && len(s.Properties["matchLabels"].Type) > 0
}

func typeOf(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return "integer or string"
	case isSelector(s):
		return "label selector"
	case s.Items != nil:
		return "list of " + typeOf(s.Items.Schema)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(s.AdditionalProperties.Schema)
	case s.Format == "date-time":
		return "time"
	default:
		return cmp.Or(s.Type, "any")
	}
}

// limits are the values that a field may have, and the one that it has if it is not set.
func limits(s *apiextensionsv1.JSONSchemaProps) string {
	var said []string
	if s.Default != nil {
		said = append(said, "Default: `"+string(s.Default.Raw)+"`.")
	}
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			var text string
			if json.Unmarshal(v.Raw, &text) != nil {
				text = string(v.Raw)
			}
			values = append(values, cmp.Or(text, `""`))
		}
		said = append(said, "Values: "+codes(values)+".")
	}
	for _, bound := range []struct {
		name  string
		value *float64
	}{{"Minimum", s.Minimum}, {"Maximum", s.Maximum}} {
		if bound.value != nil {
			said = append(said, fmt.Sprintf("%s: %d.", bound.name, int64(*bound.value)))
		}
	}
	if len(said) == 0 {
		return ""
	}
	return " " + strings.Join(said, " ")
}
