package show

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/zones"
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

// better is an error about an object, or what is nearer to the mistake: that the namespace
// does not exist, or that another name was probably meant.
func better(ctx context.Context, reader client.Reader, ref describe.Ref, err error) error {
	if apierrors.IsNotFound(err) { // of this object, or of another one that was read for it
		if missing := command.Missing(ctx, reader, ref); missing != nil {
			return missing
		}
		return err
	}
	if ref.Namespace == "" {
		return err
	}
	if missing := command.NamespaceMissing(ctx, reader, ref.Namespace); missing != nil {
		return missing
	}
	kind, known := describe.KindNamed(ref.Kind)
	if !known || !isNotFound(err) {
		return err
	}
	plain := command.NotFound(ctx, reader, kind, ref.Namespace, ref.Name)
	if advises(err) && !advises(plain) {
		return err
	}
	return plain
}

// advises is true of an error that says what to do.
func advises(err error) bool { return strings.Contains(err.Error(), "; ") }

func isNotFound(err error) bool {
	for _, missing := range []error{config.ErrNotFound, zones.ErrNotFound, plans.ErrNotFound, hub.ErrNotFound, history.ErrNotFound, explain.ErrNotFound} {
		if errors.Is(err, missing) {
			return true
		}
	}
	return false
}
