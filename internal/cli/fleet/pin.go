package fleet

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli/act"
)

func newFleetPin(f *fleeter) *cobra.Command {
	return newPin(f, act.Pin, "Keep a cluster at its revision while the rollout continues on the others",
		`shop --cluster c7 -n clusters --reason "its disk is full"`)
}

func newFleetUnpin(f *fleeter) *cobra.Command {
	return newPin(f, act.Unpin, "Let a pinned cluster follow the rollout again", "shop --cluster c7 -n clusters")
}

func newPin(f *fleeter, verb act.Verb, short, example string) *cobra.Command {
	on := ""
	cmd := f.gives(f.command(string(verb), "--cluster CLUSTER", short, example, func(ctx context.Context) error {
		return f.do(ctx, act.Request{Verb: verb, Cluster: on})
	}))
	cmd.Flags().StringVar(&on, "cluster", "", "the cluster")
	return cmd
}
