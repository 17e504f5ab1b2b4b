package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
)

// helpWidth is how wide help texts are, also where the terminal is wider.
const helpWidth = 80

// UsualExitCode is said of commands that say nothing else of their exit code.
const UsualExitCode = "The exit code is 0, or 1 with an error that says what is wrong."

// finish makes all commands alike: how they help, what they say of their exit code, and
// how they complete what a person types.
func finish(root *cobra.Command, env command.Environment) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { writeHelp(cmd.OutOrStdout(), cmd) })
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		writeUsage(cmd.OutOrStderr(), cmd)
		return nil
	})
	addCompletion(root)
	c := completer{lookup: env.Lookup}
	each(root, func(cmd *cobra.Command) {
		sayExitCode(cmd)
		cmd.Example = strings.ReplaceAll(cmd.Example, "  spillway ", "  "+root.DisplayName()+" ")
		c.complete(cmd)
	})
}

// Help is what a command says of itself.
func Help(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	var b strings.Builder
	writeHelp(&b, cmd)
	return b.String()
}

// each visits all commands that help tells of.
func each(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, beneath := range cmd.Commands() {
		if !beneath.Hidden {
			each(beneath, visit)
		}
	}
}

func sayExitCode(cmd *cobra.Command) {
	if !cmd.Runnable() || strings.Contains(cmd.Long, "exit code") {
		return
	}
	if cmd.Long == "" {
		cmd.Long = cmd.Short + "."
	}
	cmd.Long = strings.TrimSpace(cmd.Long) + "\n\n" + UsualExitCode
}

// writeHelp says what a command does, and how it is used.
func writeHelp(w io.Writer, cmd *cobra.Command) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	_, _ = fmt.Fprintf(w, "%s\n\n", folded(strings.TrimSpace(text)))
	writeUsage(w, cmd)
}

func writeUsage(w io.Writer, cmd *cobra.Command) {
	_, _ = fmt.Fprint(w, "Usage:\n")
	if cmd.Runnable() {
		_, _ = fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		_, _ = fmt.Fprintf(w, "  %s [command]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		_, _ = fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	writeCommands(w, cmd)
	writeFlags(w, "Flags", cmd.LocalFlags(), false)
	writeFlags(w, "Connection flags, as for kubectl", cmd.LocalFlags(), true)
	if cmd.HasAvailableInheritedFlags() {
		_, _ = fmt.Fprintf(w, "\nGlobal flags:\n%s", display.TrimLines(cmd.InheritedFlags().FlagUsagesWrapped(helpWidth)))
	}
	if cmd.HasAvailableSubCommands() {
		_, _ = fmt.Fprintf(w, "\n%s\n", folded(`Use "`+cmd.CommandPath()+` [command] --help" for more about a command.`))
	}
}

// writeFlags writes the flags by which a command connects to a cluster, or the others.
func writeFlags(w io.Writer, title string, flags *pflag.FlagSet, connection bool) {
	some := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if (f.Annotations[command.ConnectionFlags] != nil) == connection {
			some.AddFlag(f)
		}
	})
	if some.HasAvailableFlags() {
		_, _ = fmt.Fprintf(w, "\n%s:\n%s", title, display.TrimLines(some.FlagUsagesWrapped(helpWidth)))
	}
}

// folded fills the lines of each paragraph again, but not of one that is indented.
func folded(text string) string {
	s, paragraphs := display.Style{Width: helpWidth}, strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") {
			paragraphs[i] = s.Fold(strings.Join(strings.Fields(p), " "), 0)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// writeCommands lists the commands beneath one.
func writeCommands(w io.Writer, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	_, _ = fmt.Fprint(w, "\nCommands:\n")
	s := display.Style{Width: helpWidth}
	for _, beneath := range cmd.Commands() {
		if beneath.IsAvailableCommand() || beneath.Name() == "help" {
			padding := beneath.NamePadding()
			_, _ = fmt.Fprintf(w, "  %-*s %s\n", padding, beneath.Name(), s.Fold(beneath.Short, padding+3))
		}
	}
}

// Commands returns all commands, for their documentation.
func Commands() *cobra.Command {
	nothing := func(string) (string, bool) { return "", false }
	return newRoot(command.Environment{Args: []string{"spillway"}, Out: io.Discard, Err: io.Discard, Lookup: nothing, Now: time.Now}) //nolint:forbidigo // none of them is run
}
