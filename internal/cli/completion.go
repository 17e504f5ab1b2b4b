package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli/command"
)

// completesPlugin is what kubectl runs to complete what is typed after
// "kubectl spillway", if it finds it by its name in the PATH.
const completesPlugin = `#!/bin/sh
# Save this as kubectl_complete-spillway in a folder of your PATH, and make it
# executable. kubectl runs it to complete what is typed after "kubectl spillway".
exec kubectl-spillway __complete "$@"
`

// shells are the shells that are completed for, and where each looks for scripts.
var shells = []struct {
	name, example string
	script        func(*cobra.Command) error
}{
	{"bash", "  spillway completion bash > ~/.local/share/bash-completion/completions/spillway", func(cmd *cobra.Command) error {
		return cmd.Root().GenBashCompletionV2(cmd.OutOrStdout(), true)
	}},
	{"zsh", "  spillway completion zsh > \"${fpath[1]}/_spillway\"", func(cmd *cobra.Command) error {
		return cmd.Root().GenZshCompletion(cmd.OutOrStdout())
	}},
	{"fish", "  spillway completion fish > ~/.config/fish/completions/spillway.fish", func(cmd *cobra.Command) error {
		return cmd.Root().GenFishCompletion(cmd.OutOrStdout(), true)
	}},
	{"powershell", "  spillway completion powershell | Out-String | Invoke-Expression", func(cmd *cobra.Command) error {
		return cmd.Root().GenPowerShellCompletionWithDesc(cmd.OutOrStdout())
	}},
	{"kubectl", "  spillway completion kubectl > ~/bin/kubectl_complete-spillway\n  chmod +x ~/bin/kubectl_complete-spillway", func(cmd *cobra.Command) error {
		_, err := fmt.Fprint(cmd.OutOrStdout(), completesPlugin)
		return err //nolint:wrapcheck // nothing can be added to a broken pipe
	}},
}

// addCompletion adds the commands that print scripts.
func addCompletion(root *cobra.Command) {
	root.CompletionOptions.DisableDefaultCmd = true
	completion := &cobra.Command{
		Use: "completion", Short: "Print a completion script for a shell",
		Long: `Print a completion script for a shell. It completes commands and flags, and names from
the cluster: objects, namespaces, stages, clusters and plans.`,
	}
	for _, shell := range shells {
		who := "Print the completion script for " + shell.name
		if shell.name == "kubectl" {
			who = `Print the completion script for kubectl, which completes "kubectl spillway"`
		}
		completion.AddCommand(&cobra.Command{
			Use: shell.name, Short: who, Long: who + ". Save it where the\nexample does, and start a new shell.",
			Example: shell.example, Args: command.None("leave them out"), ValidArgsFunction: cobra.NoFileCompletions,
			RunE: func(cmd *cobra.Command, _ []string) error { return shell.script(cmd) },
		})
	}
	root.AddCommand(completion)
}
