package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// asker is what explain and status have in common.
type asker struct {
	env     Environment
	cluster cluster
	rings   ringFlags
	output  string
	flags   *pflag.FlagSet
}

func newAsker(env Environment, cmd *cobra.Command) *asker {
	a := &asker{env: env, flags: cmd.Flags()}
	a.cluster.addFlags(cmd.Flags())
	a.cluster.addNamespaceFlag(cmd.Flags())
	a.rings.add(cmd.Flags())
	outputFlag(cmd, &a.output)
	return a
}

// connect returns a reader, and the options by which the manager decides: those
// of the manager that is installed, unless they are given here.
func (a *asker) connect(ctx context.Context, namespace string) (client.Client, config.Options, error) {
	reader, err := a.cluster.reader()
	if err != nil {
		return nil, config.Options{}, err
	}
	if err := a.adoptInstalled(ctx, reader, namespace); err != nil {
		return nil, config.Options{}, err
	}
	options, err := a.rings.options(a.env.Now)
	return reader, options, err
}

// adoptInstalled takes over the flags of the manager's Deployment, of the one
// that looks at the namespace if there are several. Where none can be seen, the
// defaults have to do.
func (a *asker) adoptInstalled(ctx context.Context, reader client.Client, namespace string) error {
	var list appsv1.DeploymentList
	if err := reader.List(ctx, &list, client.MatchingLabels(manifests.ManagerLabels())); err != nil || len(list.Items) == 0 {
		return nil //nolint:nilerr // not being allowed to look is not the asker's fault
	}
	installed := list.Items[0]
	for _, d := range list.Items {
		if looksAt(managerArgs(d), namespace) {
			installed = d
		}
	}
	for _, arg := range managerArgs(installed) {
		if err := a.adopt(arg); err != nil {
			return err
		}
	}
	return nil
}

func managerArgs(d appsv1.Deployment) []string {
	var args []string
	for _, container := range d.Spec.Template.Spec.Containers {
		args = append(args, container.Args...)
	}
	return args
}

// looksAt is true if a manager with these arguments looks at the namespace.
func looksAt(args []string, namespace string) bool {
	for _, arg := range args {
		if watched, ok := strings.CutPrefix(arg, "--namespaces="); ok {
			return slices.Contains(strings.Split(watched, ","), namespace)
		}
	}
	return true
}

func (a *asker) adopt(arg string) error {
	name, value, ok := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
	f := a.flags.Lookup(name)
	if !ok || f == nil || f.Changed || name == "kubeconfig" {
		return nil
	}
	if err := a.flags.Set(name, value); err != nil {
		return fmt.Errorf("the installed manager runs with %s: %w", arg, err)
	}
	return nil
}

func newExplain(env Environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain KIND/NAME",
		Short: "Say how something stands, and why it waits: down to the root, with the command that comes next",
		Long: "Say in one sentence how something stands, and then why, link by link, down to what\n" +
			"has to change: a module waits for a cluster, that for a group, that for a Pod, and\n" +
			"the Pod for a Secret that nobody has made. KIND is any kind by any name that kubectl\n" +
			"takes.",
		Example: "  spillway explain deployment/web -n shop\n  spillway explain rolloutgroup/ingester -n mimir\n  spillway explain instance/zookeeper -n shop\n  spillway explain module/shop --cluster c1 -n clusters\n  spillway explain pod/web-0 -n shop",
		Args:    exactly(1, "name one as KIND/NAME, such as deployment/web"),
	}
	a := newAsker(env, cmd)
	cluster := cmd.Flags().String("cluster", "", "of a module, only how it stands on this cluster")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.explain(cmd, args[0], *cluster) }
	return cmd
}

// explain explains whatever a person has named.
func (a *asker) explain(cmd *cobra.Command, arg, onCluster string) error {
	namespace, err := a.cluster.namespaced()
	if err != nil {
		return err
	}
	if _, _, err := describe.Split(arg); err != nil {
		return err
	}
	if _, isModule := moduleNamed(arg); onCluster != "" && !isModule {
		return errors.New("--cluster: only modules are on clusters; leave it out, or name a module as module/NAME")
	}
	ref, err := describe.Named(a.cluster.mapper, namespace, arg)
	if err != nil {
		return err
	}
	reader, options, err := a.connect(cmd.Context(), namespace)
	if err != nil {
		return err
	}
	chain, err := a.chain(cmd.Context(), describe.World{Client: reader, Options: options, Dial: dial, Flags: a.cluster.given()}, ref, onCluster)
	if err != nil {
		return err
	}
	return show(cmd.OutOrStdout(), a.output, chain, func(w io.Writer) { writeChain(w, styleOf(w, a.env.Lookup), &chain, a.env.Now()) })
}

func (a *asker) chain(ctx context.Context, w describe.World, ref describe.Ref, onCluster string) (describe.Chain, error) {
	if onCluster != "" {
		return describe.ExplainCluster(ctx, w, ref, onCluster)
	}
	return describe.Explain(ctx, w, ref)
}

func exactly(n int, action string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("%s takes %d argument, not %d: %s", cmd.CommandPath(), n, len(args), action)
		}
		return nil
	}
}

// writeExplanation writes the facts of a workload.
func writeExplanation(f *facts, e *config.Explanation) {
	f.row("state", stateText(e))
	if e.Position > 0 {
		f.row("queue", fmt.Sprintf("number %d", e.Position))
	}
	f.optional("progress", e.Progress)
	for _, missing := range e.Missing {
		f.row("missing", missing)
	}
	for _, problem := range e.Problems {
		f.row("problem", problem)
	}
	for _, use := range e.Uses {
		f.row("uses", useText(use))
	}
	if e.LastRoll != nil {
		f.row("last roll", rollText(*e.LastRoll))
	}
	f.optional("hash", e.Hash)
}

func stateText(e *config.Explanation) string {
	if e.Reason == "" {
		return string(e.State)
	}
	return fmt.Sprintf("%s (%s)", e.State, e.Reason)
}

func changedText(changed []string) string {
	if len(changed) == 0 {
		return ", what changed was not seen"
	}
	return ", changed: " + strings.Join(changed, ", ")
}

func useText(use config.UseFact) string {
	text := use.Object
	if len(use.Keys) > 0 {
		text += " (" + strings.Join(use.Keys, ", ") + ")"
	}
	switch {
	case use.Ignored:
		text += ", ignored"
	case !use.Exists && use.Required:
		text += ", missing"
	case !use.Exists:
		text += ", optional, not there"
	}
	return text
}

// rollText says when the hash was last set, and why.
func rollText(r workload.Roll) string {
	if r.Admitted.After(r.At) {
		return r.Admitted.UTC().Format(momentLayout) + ", with a change of the workload itself"
	}
	return r.At.UTC().Format(momentLayout) + changedText(r.Changed)
}
