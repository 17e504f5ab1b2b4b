package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/spillway-dev/spillway/internal/manifests"
)

const valuesPreface = `# Values of an installation

<!-- Generated from package manifests by make generate; edit the descriptions there. -->

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
func valuesPage() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(valuesPreface)
	if err := writeRows(&b, reflect.ValueOf(manifests.DefaultValues()), ""); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// writeRows writes a row for each value, and one for each value inside of it.
func writeRows(b *bytes.Buffer, v reflect.Value, prefix string) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name := prefix + f.Tag.Get("json")
		if isGroup(f.Type) {
			if err := writeRows(b, v.Field(i), name+"."); err != nil {
				return err
			}
			continue
		}
		value, err := json.Marshal(valueOf(v.Field(i)))
		if err != nil {
			return fmt.Errorf("value %s: %w", name, err)
		}
		shown := ""
		if text := string(value); text != `""` && text != "[]" && text != "{}" {
			shown = "`" + strings.Trim(text, `"`) + "`"
		}
		meaning := strings.ReplaceAll(f.Tag.Get("desc"), "|", `\|`)
		fmt.Fprintf(b, "| <a id=%q></a>`%s` | %s | %s |\n", strings.ToLower(name), name, shown, meaning)
	}
	return nil
}
