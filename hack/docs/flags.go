package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spillway-dev/spillway/internal/cli/command"
)

const flagsPreface = `# Flags of the manager

<!-- Generated from the command manager by make generate. -->

Give flags to an installed manager after ` + "`--`" + `:

` + "```sh" + `
spillway install --export -- --max-rolling=5 --log-format=json
` + "```" + `

Each flag is also an environment variable; the flag wins.
The flags of the other commands are on the page of the [commands](commands.md).
`

// flagsPage is docs/flags.md.
func flagsPage(root *cobra.Command) ([]byte, error) {
	manager, _, err := root.Find([]string{"manager"})
	if err != nil {
		return nil, fmt.Errorf("find the manager: %w", err)
	}
	var b bytes.Buffer
	b.WriteString(flagsPreface + "\n| Flag | Environment variable | Default | Meaning |\n|---|---|---|---|\n")
	manager.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := strings.TrimSpace("--" + f.Name + " " + kind)
		fmt.Fprintf(&b, "| <a id=%q></a>`%s` | `%s` | %s | %s |\n", f.Name, name, command.Variable(f.Name), defaultOf(f), cell(usage))
	})
	return b.Bytes(), nil
}

// defaultOf is the value of a flag that is not given, where there is one.
func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "[]":
		return ""
	default:
		return "`" + strings.Trim(f.DefValue, "[]") + "`"
	}
}
