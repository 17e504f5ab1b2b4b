package fleet

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/rollout"
)

// overview is what the command status is asked for.
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

// narrow leaves what was asked for, in the order that was asked for.
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
