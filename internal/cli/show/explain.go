package show

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/plans"
)

// explaining answers what a person asks about one object.
type explaining struct{ *command.Query }

// NewExplain returns the command explain.
func NewExplain(env command.Environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain KIND/NAME",
		Short: "Show why an object waits, down to the root cause, and the next command",
		Long: "Show the state of an object in one sentence, and then why it waits, link by link,\n" +
			"down to the root cause. For example, a module waits for a cluster, the cluster for a\n" +
			"group, the group for a Pod, and the Pod for a Secret that does not exist.\n" +
			"KIND is any name of a kind that kubectl accepts.\n\n" +
			"The exit code is 0, and 1 with an error that says what is wrong: also for an\n" +
			"Instance whose plan failed, or that is invalid.",
		Example: "  spillway explain deployment/web -n shop\n  spillway explain rolloutgroup/ingester -n mimir\n  spillway explain instance/zookeeper -n shop\n  spillway explain module/shop --cluster c1 -n clusters\n  spillway explain pod/web-0 -n shop",
		Args:    command.Exactly(1, "name one as KIND/NAME, such as deployment/web"),
	}
	a := explaining{command.NewQuery(env, cmd)}
	cluster := cmd.Flags().String("cluster", "", "of a module, only its state on this cluster")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.explain(cmd, args[0], *cluster) }
	return cmd
}

// explain explains whatever a person has named.
func (a explaining) explain(cmd *cobra.Command, arg, onCluster string) error {
	namespace, err := a.Cluster.ResolveNamespace()
	if err != nil {
		return err
	}
	if _, _, err := describe.Split(arg); err != nil {
		return a.meant(cmd.Context(), namespace, arg, err)
	}
	if _, isModule := command.NamedAs(arg, model.KindModule, model.KindBootstrap); onCluster != "" && !isModule {
		return errors.New("--cluster: only modules are on clusters; leave it out, or name a module as module/NAME")
	}
	ref, err := describe.Named(a.Cluster.RESTMapper, namespace, arg)
	if err != nil {
		return err
	}
	reader, options, err := a.Connect(cmd.Context(), namespace)
	if err != nil {
		return err
	}
	chain, err := a.chain(cmd.Context(), explain.World{Client: reader, Options: options, Dial: command.Dial, Flags: a.Cluster.Words()}, ref, onCluster)
	if err != nil {
		return better(cmd.Context(), reader, ref, err)
	}
	err = command.Show(cmd.OutOrStdout(), a.Output, chain, func(w io.Writer) { display.Chain(w, display.StyleOf(w, a.Env.Lookup), &chain, a.Env.Now()) })
	if first := &chain.Links[0]; err == nil && first.Kind == describe.KindInstance && first.Phase == plans.PhaseStalled {
		return fmt.Errorf("Instance %s needs an action: %s", first.Name, first.Reason) //nolint:staticcheck // a kind
	}
	return err
}

// meant is the error for what names no object, with those that have this name.
func (a explaining) meant(ctx context.Context, namespace, arg string, err error) error {
	if describe.NoKind(arg) == nil {
		return err
	}
	reader, failed := a.Cluster.Client()
	if failed != nil {
		return err
	}
	if found := command.WithName(ctx, reader, namespace, arg); len(found) > 0 {
		return fmt.Errorf("%q has no kind: did you mean %s?", arg, strings.Join(found, " or "))
	}
	return err
}

func (a explaining) chain(ctx context.Context, w explain.World, ref describe.Ref, onCluster string) (explain.Chain, error) {
	if onCluster != "" {
		return explain.Cluster(ctx, w, ref, onCluster)
	}
	return explain.Explain(ctx, w, ref)
}
