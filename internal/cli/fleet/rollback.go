package fleet

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/show"
)

func newFleetRollback(f *fleeter) *cobra.Command {
	to := ""
	cmd := f.gives(f.command("rollback", "[--to REVISION]", "Go back to an older revision, under the same budget, and stay there",
		`shop -n clusters --reason "checkout fails"`, func(ctx context.Context) error {
			return f.do(ctx, act.Request{Verb: act.Rollback, To: to})
		}))
	cmd.Flags().StringVar(&to, "to", "", "the revision, by name or number, or \"latest\" for what the template says (default: the last other one that reached all clusters)")
	return cmd
}

func newFleetHistory(f *fleeter) *cobra.Command {
	told := &show.History{Env: f.Env}
	var cmd *cobra.Command
	cmd = f.command("history", "", "List the revisions of a module, who wrote them, and what became of them", "shop -n clusters", func(context.Context) error {
		return told.Print(cmd, f.Client, f.module.Ref)
	})
	told.AddFlags(cmd)
	return cmd
}
