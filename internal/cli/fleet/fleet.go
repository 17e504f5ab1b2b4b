package fleet

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/cli/show"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/rollout"
)

type fleeter struct {
	act.Person

	out    io.Writer
	module act.Module
}

func (f *fleeter) get(ctx context.Context) (client.Object, error) {
	module := f.named()
	return module, act.Get(ctx, f.Client, module)
}

func (f *fleeter) named() client.Object {
	module := model.New(f.module.Kind)
	module.SetNamespace(f.module.Namespace)
	module.SetName(f.module.Name)
	return module
}

// New returns the command fleet with the commands beneath it.
func New(env command.Environment) *cobra.Command {
	cmd := &cobra.Command{Use: "fleet", Short: "Show and steer the rollout of modules to clusters"}
	cmd.AddCommand(newFleetStatus(env))
	for _, add := range []func(*fleeter) *cobra.Command{
		newFleetApprove, newFleetPin, newFleetUnpin, newFleetRollback, newFleetHistory,
	} {
		cmd.AddCommand(add(&fleeter{Person: act.Person{Env: env}}))
	}
	cmd.AddCommand(newImport(&importer{}))
	for _, add := range []func(*registrar) *cobra.Command{newFleetClusters, newRegister, newRotate, newUnregister} {
		cmd.AddCommand(add(&registrar{lookup: env.Lookup}))
	}
	return cmd
}

func (f *fleeter) do(ctx context.Context, r act.Request) error {
	r.Ref = f.module.Ref
	return f.Do(ctx, f.out, r)
}

// done tells what was done with an object for a module, here and in an Event about the
// module.
func (f *fleeter) done(ctx context.Context, module, changed client.Object, word rollout.Reason, said string) error {
	if err := act.Show(f.out, f.Output, f.Client, said+f.DryRun.Note(), changed); err != nil || f.DryRun.On() {
		return err
	}
	return act.RecordEvent(ctx, f.Client, act.About(fleetv1.GroupVersion.WithKind(f.module.Kind), module), word, f.Who, f.Env.Now())
}

// command is one that is about a module; run has a client and the module's name.
func (f *fleeter) command(verb, usage, short, example string, run func(ctx context.Context) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: strings.TrimSpace(verb + " MODULE " + usage), Short: short, Example: "  spillway fleet " + verb + " " + example,
		Args: command.Exactly(1, "name one module, such as shop, module/shop or bootstrapmodule/flux; spillway fleet status lists them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.connect(cmd, args[0]); err != nil {
				return err
			}
			return run(cmd.Context())
		},
	}
	f.Cluster.AddNamespacedFlags(cmd.Flags())
	return cmd
}

func (f *fleeter) connect(cmd *cobra.Command, arg string) (err error) {
	if f.module, err = Named(arg); err != nil {
		return err
	}
	if err := f.Connect(); err != nil {
		return err
	}
	f.Identify(cmd.Context())
	f.module.Namespace, f.out = f.Namespace, cmd.OutOrStdout()
	return nil
}

// Named takes a name with or without the kind.
func Named(arg string) (act.Module, error) {
	if ref, ok := command.NamedAs(arg, model.KindModule, model.KindBootstrap); ok {
		return act.Module{Ref: ref}, nil
	}
	if arg == "" || strings.Contains(arg, "/") {
		return act.Module{}, fmt.Errorf("%q is not a module; name it as NAME, module/NAME or bootstrapmodule/NAME", arg)
	}
	return act.Module{Ref: describe.Ref{Kind: model.KindModule, Name: arg}}, nil
}

func newFleetPin(f *fleeter) *cobra.Command {
	return newPin(f, act.Pin, "Keep a cluster at its revision while the rollout continues on the others",
		`shop --cluster c7 -n clusters --reason "its disk is full"`)
}

func newFleetUnpin(f *fleeter) *cobra.Command {
	return newPin(f, act.Unpin, "Let a pinned cluster follow the rollout again", "shop --cluster c7 -n clusters")
}

func newPin(f *fleeter, verb act.Verb, short, example string) *cobra.Command {
	on := ""
	cmd := f.AddFlags(f.command(string(verb), "--cluster CLUSTER", short, example, func(ctx context.Context) error {
		return f.do(ctx, act.Request{Verb: verb, Cluster: on})
	}), act.ReasonUsage)
	cmd.Flags().StringVar(&on, "cluster", "", "the cluster")
	return cmd
}

func newFleetRollback(f *fleeter) *cobra.Command {
	to := ""
	cmd := f.AddFlags(f.command("rollback", "[--to REVISION]", "Go back to an older revision, under the same budget, and stay there",
		`shop -n clusters --reason "checkout fails"`, func(ctx context.Context) error {
			return f.do(ctx, act.Request{Verb: act.Rollback, To: to})
		}), act.ReasonUsage)
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

type overview struct {
	*command.Query

	all       bool
	selection command.Selection
}

// The fields that modules can be selected and sorted by.
var (
	moduleSelectable = []string{"metadata.name", "metadata.namespace"}
	moduleSortable   = []string{"name", "namespace", "kind", "phase", "reason", "since", "target"}
)

var moduleFields = map[string]func(e *decision.Explanation) string{
	"name": func(e *decision.Explanation) string { return e.Name }, "namespace": func(e *decision.Explanation) string { return e.Namespace },
	"kind": func(e *decision.Explanation) string { return e.Kind }, "phase": func(e *decision.Explanation) string { return e.Phase },
	"reason": func(e *decision.Explanation) string { return string(e.Reason) }, "target": func(e *decision.Explanation) string { return e.Target },
	"since": func(e *decision.Explanation) string { return command.Sortable(e.Since) },
}

func newFleetStatus(env command.Environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "List the modules and their state",
		Example: "  spillway fleet status -A\n  spillway fleet status -n clusters -l team=shop --sort-by phase",
		Args:    command.None("see one with spillway explain module/NAME"),
	}
	o := &overview{Query: command.NewQuery(env, cmd, command.OutputName)}
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "all namespaces")
	o.selection.AddFlags(cmd.Flags(), moduleSelectable, moduleSortable)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return o.run(cmd) }
	return cmd
}

func (o *overview) run(cmd *cobra.Command) error {
	if err := o.selection.Check(); err != nil {
		return err
	}
	if o.all && o.Cluster.Namespace != "" {
		return command.ErrBothNamespaces
	}
	namespace, err := o.Cluster.ResolveNamespace()
	if err != nil {
		return err
	}
	reader, options, err := o.Connect(cmd.Context(), namespace)
	if err != nil {
		return err
	}
	if o.all {
		namespace = ""
	}
	found, err := hub.Status(cmd.Context(), reader, hub.Options{Namespaces: options.Namespaces, Now: options.Now}, namespace)
	if err != nil {
		return err
	}
	if found, err = o.narrow(cmd.Context(), reader, namespace, found); err != nil {
		return err
	}
	if len(found) == 0 && namespace != "" {
		if err := command.NamespaceMissing(cmd.Context(), reader, namespace); err != nil {
			return err
		}
	}
	o.TellNoManager(cmd.Context(), slices.ContainsFunc(found, func(e decision.Explanation) bool { return e.Phase != string(rollout.PhaseComplete) }))
	return o.print(cmd.OutOrStdout(), found)
}

func (o *overview) narrow(ctx context.Context, reader client.Reader, namespace string, found []decision.Explanation) ([]decision.Explanation, error) {
	refs := make([]describe.Ref, len(found))
	for i := range found {
		refs[i] = refOf(&found[i])
	}
	labeled, err := o.selection.Labeled(ctx, reader, namespace, refs)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(e decision.Explanation) bool {
		ref := refOf(&e)
		return !o.selection.HasFields(command.NamedFields(ref)) || !labeled(ref)
	})
	command.SortBy(&o.selection, found, moduleFields)
	return found, nil
}

func refOf(e *decision.Explanation) describe.Ref {
	return describe.Ref{Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}
}

func (o *overview) print(w io.Writer, found []decision.Explanation) error {
	if o.Output == command.OutputName {
		for i := range found {
			_, _ = fmt.Fprintln(w, refOf(&found[i]))
		}
		return nil
	}
	return command.Show(w, o.Output, found, func(w io.Writer) {
		display.Modules(w, display.StyleOf(w, o.Env.Lookup), found)
		switch {
		case len(found) == 0 && o.all:
			_, _ = fmt.Fprintln(w, "No modules found.")
		case len(found) == 0:
			_, _ = fmt.Fprintln(w, "No modules found in this namespace; use -A for all namespaces.")
		}
	})
}
