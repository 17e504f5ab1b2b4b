package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

const preface = `# Values of an installation

<!-- Generated from charts/spillway/values.yaml by make generate; edit the comments there. -->

Write the values that you need into a file, or give them on standard input:

` + "```sh" + `
echo '{replicas: 3, metrics: {serviceMonitor: true}}' | spillway install --export --values=-
` + "```" + `

The [chart](operations.md#by-helm) has the same values; ` + "`--set image.tag=v0.1.0`" + ` sets one of them.
A value that is not listed is refused.

| Value | Default | Meaning |
|---|---|---|
`

// valuesPage is docs/values.md.
func valuesPage(file string) ([]byte, error) {
	raw, err := os.ReadFile(file) //nolint:gosec // of the repository
	if err != nil {
		return nil, fmt.Errorf("read the values: %w", err)
	}
	var values yaml.Node
	if err := yaml.Unmarshal(raw, &values); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	b := bytes.NewBufferString(preface)
	if err := writeRows(b, values.Content[0], ""); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// writeRows writes a row for each value, and one for each that a group of values has.
func writeRows(b *bytes.Buffer, group *yaml.Node, prefix string) error {
	for i := 0; i < len(group.Content); i += 2 {
		key, of := group.Content[i], group.Content[i+1]
		name := prefix + key.Value
		if of.Kind == yaml.MappingNode && len(of.Content) > 0 && of.Content[0].HeadComment != "" {
			if err := writeRows(b, of, name+"."); err != nil {
				return err
			}
			continue
		}
		var value any
		if err := of.Decode(&value); err != nil {
			return fmt.Errorf("value %s: %w", name, err)
		}
		text, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("value %s: %w", name, err)
		}
		shown := ""
		if text := string(text); text != `""` && text != "[]" && text != "{}" {
			shown = "`" + strings.Trim(text, `"`) + "`"
		}
		meaning := strings.NewReplacer("# ", "", "\n# ", " ", "|", `\|`).Replace(key.HeadComment)
		fmt.Fprintf(b, "| <a id=%q></a>`%s` | %s | %s |\n", strings.ToLower(name), name, shown, meaning)
	}
	return nil
}
