package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const exitCodesPreface = `# Exit codes

<!-- Generated from the help of the commands by make generate. -->

Use the exit code of a command in CI:

` + "```sh" + `
spillway lint examples/shop --fail-on=warning && echo "nothing to fix"
` + "```" + `

`

// exitCodesPage is docs/exit-codes.md.
func exitCodesPage(root *cobra.Command, usual string) []byte {
	var b bytes.Buffer
	b.WriteString(exitCodesPreface)
	var others []string
	b.WriteString("| Command | Exit code |\n|---|---|\n")
	each(root, func(cmd *cobra.Command) {
		text := exitCode(cmd)
		switch text {
		case "":
		case usual:
			others = append(others, fmt.Sprintf("[%s](commands.md#%s)", cmd.CommandPath(), anchor(cmd)))
		default:
			fmt.Fprintf(&b, "| [%s](commands.md#%s) | %s |\n", cmd.CommandPath(), anchor(cmd), cell(text))
		}
	})
	fmt.Fprintf(&b, "\n## The other commands\n\n%s\n\n- %s\n", usual, strings.Join(others, "\n- "))
	return b.Bytes()
}

// exitCode is what the help of a command and of its flags say of its exit code. The help is
// quoted from the sentence that names it to the end of the paragraph.
func exitCode(cmd *cobra.Command) string {
	var said []string
	for paragraph := range strings.SplitSeq(cmd.Long, "\n\n") {
		paragraph = strings.Join(strings.Fields(paragraph), " ")
		at := strings.Index(paragraph, "he exit code")
		switch {
		case at > 0:
			said = append(said, paragraph[at-1:])
		case strings.Contains(paragraph, "exit code"):
			said = append(said, paragraph)
		}
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if strings.Contains(f.Usage, "exit code") {
			said = append(said, "`--"+f.Name+"`: "+f.Usage+".")
		}
	})
	return strings.Join(said, " ")
}
