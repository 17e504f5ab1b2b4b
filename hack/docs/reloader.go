package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

const reloaderPreface = `# Annotations and flags of Reloader

<!-- Generated from package vocabulary by make generate. -->

See what each annotation and flag of Reloader 1.4.21 does in Spillway, where the manager is installed with ` + "`--reloader-annotations`" + `:

` + "```sh" + `
spillway install --export --reloader-annotations
` + "```" + `

[Change over from Reloader](from-reloader.md) has the steps.
`

// reloaderPage is docs/reloader.md.
func reloaderPage(root *cobra.Command) ([]byte, error) {
	manager, _, err := root.Find([]string{"manager"})
	if err != nil {
		return nil, fmt.Errorf("find the manager: %w", err)
	}
	var b bytes.Buffer
	b.WriteString(reloaderPreface + "\n## Annotations\n\n| Annotation | Flag that renames it | In Spillway | Native spelling |\n|---|---|---|---|\n")
	for _, k := range vocabulary.ReloaderKeys() {
		fmt.Fprintf(&b, "| `%s` | `--%s` | %s | %s |\n", k.Name, k.Flag, sameOr(k.Differs), codeKeys(k.Instead))
	}
	b.WriteString("\n## Flags\n\nAn accepted flag is given to the manager as to Reloader.\nThe manager logs at its start which have no effect, so that the arguments of Reloader can stay as they are.\n")
	wrong := writeFlags(&b, manager, vocabulary.ReloaderFlags(), func(f *vocabulary.FormerFlag) string { return sameOr(f.Differs) })
	b.WriteString("\n## Kinds\n\n| Kind | In Spillway |\n|---|---|\n")
	for _, k := range vocabulary.ReloaderKinds() {
		fmt.Fprintf(&b, "| %s of `%s` | %s |\n", k.Kind, k.Group, sameOr(k.Because))
	}
	return b.Bytes(), wrong
}

func sameOr(differs string) string {
	if differs == "" {
		return "the same"
	}
	return "different: " + cell(differs)
}

// codeKeys marks the names of annotations in a text as code.
func codeKeys(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		if name := strings.TrimRight(word, ":;,"); strings.HasPrefix(name, "spillway.dev/") {
			words[i] = "`" + name + "`" + word[len(name):]
		}
	}
	return cell(strings.Join(words, " "))
}
