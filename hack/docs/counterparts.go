package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

const counterpartsPreface = `# Counterparts of annotations and flags

<!-- Generated from package vocabulary by make generate. -->

Find what each annotation and flag of wave, rollout-operator, KUDO and fleeet does in Spillway.
Those of Reloader are [on a page of their own](reloader.md).
An accepted flag is given to the manager as to the program before it, and [the change-over](migrate.md) carries each over that has a counterpart:

` + "```sh" + `
spillway install --export -- --update-rate=0.5 --update-burst=7
` + "```" + `
`

// titles are the headings of the page; Reloader has a page of its own.
var titles = map[string]string{"wave": "wave", "rollout-operator": "rollout-operator", "kudo": "KUDO", "fleeet": "fleeet"}

// counterpartsPage is docs/counterparts.md.
func counterpartsPage(root *cobra.Command) ([]byte, error) {
	manager, _, err := root.Find([]string{"manager"})
	if err != nil {
		return nil, fmt.Errorf("find the manager: %w", err)
	}
	var b bytes.Buffer
	var wrong []error
	b.WriteString(counterpartsPreface)
	for _, f := range vocabulary.Formers() {
		if titles[f.Name] == "" {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\nThis is about %s.\n", titles[f.Name], f.Of)
		writeKeys(&b, f.Keys)
		wrong = append(wrong, writeFlags(&b, manager, f.Flags, becomes))
		if f.Name == "kudo" {
			writeCommands(&b)
		}
	}
	return b.Bytes(), errors.Join(wrong...)
}

func writeKeys(b *bytes.Buffer, keys []vocabulary.FormerKey) {
	if len(keys) == 0 {
		b.WriteString("It reads no annotations and no labels of its own.\n")
		return
	}
	b.WriteString("\n| Name | Where | In Spillway | Native spelling |\n|---|---|---|---|\n")
	for _, k := range keys {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", k.Name, k.Place, codeWords(sameOr(k.Differs)), codeWords(k.Instead))
	}
}

// writeCommands is the command line of KUDO.
func writeCommands(b *bytes.Buffer) {
	b.WriteString("\nThe manager of KUDO has no flags. Its command line has these, and `kubectl kudo test`, which runs the `kubectl-kuttl` that is installed.\n" +
		"[A link](packages.md#scripts-for-kudo) gives Spillway the same one.\n\n| Command of `kubectl kudo` | Flags | In Spillway |\n|---|---|---|\n")
	for _, c := range append(vocabulary.KUDOCommands(), vocabulary.KUDOCommand{Flags: vocabulary.KUDOGlobal}) {
		var flags []string
		for flag := range strings.FieldsSeq(c.Flags) {
			name, _, _ := strings.Cut(flag, "=")
			flags = append(flags, "`"+name+"`")
		}
		words := "each"
		if c.Words != "" {
			words = "`" + strings.ReplaceAll(c.Words, " X", " …") + "`"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", words, strings.Join(slices.Compact(flags), " "), codeWords(sameOr(c.Differs)))
	}
}

// writeFlags writes a table of flags, with what becomes of each, and is an error if the manager accepts others than package
// vocabulary says. That it does not call a URL in place of a roll, it says to a user who gives that flag.
func writeFlags(b *bytes.Buffer, manager *cobra.Command, flags []vocabulary.FormerFlag, becomes func(*vocabulary.FormerFlag) string) error {
	var wrong []error
	b.WriteString("\n| Flag or variable | Accepted | In Spillway |\n|---|---|---|\n")
	for i := range flags {
		f := &flags[i]
		if exists := manager.Flag(f.Name) != nil; !f.IsVariable() && exists != f.Accepted && f.Name != vocabulary.ReloaderWebhook {
			wrong = append(wrong, fmt.Errorf("--%s is accepted: %v, and package vocabulary says %v", f.Name, exists, f.Accepted))
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", flagName(f), accepted(f), becomes(f))
	}
	return errors.Join(wrong...)
}

func flagName(f *vocabulary.FormerFlag) string {
	if f.IsVariable() {
		return f.Name
	}
	return "--" + f.Name
}

func accepted(f *vocabulary.FormerFlag) string {
	switch {
	case f.Vain:
		return "yes, without effect"
	case f.Accepted:
		return "yes"
	default:
		return "no"
	}
}

// becomes is what has the effect of a flag.
func becomes(f *vocabulary.FormerFlag) string {
	var parts []string
	switch target := f.Target(); {
	case f.As == vocabulary.WatchNamespaces:
		parts = append(parts, "spillway install --"+vocabulary.WatchNamespaces)
	case target != "" && target != f.Name:
		parts = append(parts, "--"+target)
	case f.Sets && f.Differs == "":
		parts = append(parts, "`spillway install` sets its own")
	}
	if f.Differs != "" {
		parts = append(parts, f.Differs)
	}
	return codeWords(cell(cmp.Or(strings.Join(parts, "; "), "the same")))
}

// code matches the names of flags, with the command before them, and of variables.
var code = regexp.MustCompile(`(spillway install )?--[a-z][a-z.=-]*[a-z]|OTEL_[A-Z_]+`)

// codeWords marks the names of annotations, flags and variables in a text as code.
func codeWords(text string) string { return code.ReplaceAllString(codeKeys(text), "`$0`") }
