package authoring

import (
	"fmt"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/packages/lines"
)

// appendItem adds an item to a list of a file, at the end.
func appendItem(raw []byte, list string, item any) ([]byte, error) {
	text, err := yaml.Marshal([]any{item})
	if err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return appendTo(raw, list, yamlv3.SequenceNode, named(string(text)))
}

// named is an item with its name first, as people write it.
func named(item string) string {
	all := strings.SplitAfter(item, "\n")
	for i, line := range all {
		if i > 0 && strings.HasPrefix(line, "  name: ") {
			first := strings.Replace(all[0], "- ", "  ", 1)
			return strings.Replace(line, "  ", "- ", 1) + first + strings.Join(all[1:i], "") + strings.Join(all[i+1:], "")
		}
	}
	return item
}

// appendField adds a field to a map of a file, at the end.
func appendField(raw []byte, mapping, name string, value any) ([]byte, error) {
	text, err := yaml.Marshal(map[string]any{name: value})
	if err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return appendTo(raw, mapping, yamlv3.MappingNode, string(text))
}

// appendTo adds lines to a field of a file.
func appendTo(raw []byte, field string, kind yamlv3.Kind, added string) ([]byte, error) {
	var document yamlv3.Node
	if err := yamlv3.Unmarshal(raw, &document); err != nil {
		return nil, fmt.Errorf("invalid YAML: %w", err)
	}
	key, value := fieldOf(&document, field)
	all := strings.SplitAfter(string(raw), "\n")
	switch {
	case key == nil:
		return []byte(ended(string(raw)) + field + ":\n" + indented(added, childIndent(kind, 0))), nil
	case value.Kind == yamlv3.ScalarNode && value.Tag == "!!null", len(value.Content) == 0 && value.Kind == kind:
		empty := strings.NewReplacer(" []", "", " {}", "").Replace(all[key.Line-1])
		all[key.Line-1] = ended(empty) + indented(added, childIndent(kind, 0))
		return []byte(strings.Join(all, "")), nil
	case value.Kind != kind, value.Style&yamlv3.FlowStyle != 0:
		return nil, fmt.Errorf("%s is not written in lines of its own, so that nothing can be added to it; write each item in lines of its own", field)
	}
	end := lines.End(all, key.Line-1, key.Column-1, kind == yamlv3.SequenceNode)
	all[end-1] = ended(all[end-1]) + indented(added, value.Column-1)
	return []byte(strings.Join(all, "")), nil
}

// childIndent is how far the items of a new list or the fields of a new map are indented.
func childIndent(kind yamlv3.Kind, column int) int {
	if kind == yamlv3.MappingNode {
		return column + 2
	}
	return column
}

func fieldOf(document *yamlv3.Node, name string) (key, value *yamlv3.Node) {
	if len(document.Content) == 0 || document.Content[0].Kind != yamlv3.MappingNode {
		return nil, nil
	}
	root := document.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == name {
			return root.Content[i], root.Content[i+1]
		}
	}
	return nil, nil
}

// ended is a text that ends with a line, or is empty.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

func indented(text string, by int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.Repeat(" ", by) + line)
	}
	return b.String()
}
