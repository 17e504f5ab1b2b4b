package lifecycle

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/command"
)

// The kinds that can be listed.
const (
	getInstances = "instances"
	getOperators = "operators"
	getVersions  = "operatorversions"
	getAll       = "all"
)

func newGet(env command.Environment) *cobra.Command {
	o := &operation{env: env}
	cmd := &cobra.Command{
		Use: "get instances|operators|operatorversions|all", Short: "List what is installed in a namespace",
		Example: "  spillway package get instances -n shop\n" +
			"  spillway package get all -n shop -o name",
		Args: command.Exactly(1, "name instances, operators, operatorversions or all"), ValidArgs: []string{getInstances, getOperators, getVersions, getAll},
		RunE: o.connected(o.list),
	}
	o.addFlags(cmd)
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "output format: json, yaml or name (default: text)")
	return cmd
}

// listed is a table of one kind, and its objects.
type listed struct {
	title   string
	rows    []string
	objects []client.Object
}

func (o *operation) list(ctx context.Context, args []string) error {
	lists := map[string]func(context.Context) (listed, error){getInstances: o.instances, getOperators: o.operators, getVersions: o.versions}
	names := args
	if args[0] == getAll {
		names = []string{getOperators, getVersions, getInstances}
	}
	var tables []listed
	objects := 0
	for _, name := range names {
		list, ok := lists[strings.TrimSuffix(name, "s")+"s"]
		if !ok {
			return fmt.Errorf("%q is not known; use instances, operators, operatorversions or all", name)
		}
		found, err := list(ctx)
		if err != nil {
			return err
		}
		tables, objects = append(tables, found), objects+len(found.objects)
	}
	if objects == 0 {
		if err := command.NamespaceMissing(ctx, o.client, o.namespace); err != nil {
			return err
		}
	}
	if o.output == "" {
		o.writeTables(tables, objects)
		return nil
	}
	return o.writeObjects(tables)
}

// writeObjects writes what is listed in the format that was asked for.
func (o *operation) writeObjects(tables []listed) error {
	r := o.results()
	for _, table := range tables {
		for _, obj := range table.objects {
			if err := r.add(obj, ""); err != nil {
				return err
			}
		}
	}
	return r.end()
}

// writeTables writes what is listed, or what to type if there is nothing.
func (o *operation) writeTables(tables []listed, objects int) {
	for i, table := range tables {
		if i > 0 {
			_, _ = fmt.Fprintln(o.out)
		}
		writeTable(o.out, table)
	}
	if objects == 0 {
		_, _ = fmt.Fprintf(o.env.Err, "note: nothing of that is in namespace %s; to install a package: %s\n", o.namespace, o.next("package", "install", "PACKAGE", "NAME"))
	}
}

func writeTable(w io.Writer, l listed) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, l.title)
	for _, row := range l.rows {
		_, _ = fmt.Fprintln(table, row)
	}
	_ = table.Flush()
}

func (o *operation) instances(ctx context.Context) (listed, error) {
	found, list := listed{title: "INSTANCE\tOPERATOR VERSION\tPLAN\tSTATUS"}, &v1beta1.InstanceList{}
	if err := o.client.List(ctx, list, client.InNamespace(o.namespace)); err != nil {
		return found, fmt.Errorf("list instances: %w", err)
	}
	for k := range list.Items {
		i, plan := &list.Items[k], ""
		i.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Instance"))
		if x := i.Status.Execution; x != nil {
			plan = x.Plan
		}
		found.objects = append(found.objects, i)
		found.rows = append(found.rows, fmt.Sprintf("%s\t%s\t%s\t%s", i.Name, i.Spec.OperatorVersion.Name, plan, i.Status.AggregatedStatus.Status))
	}
	return found, nil
}

func (o *operation) operators(ctx context.Context) (listed, error) {
	found, list := listed{title: "OPERATOR\tDESCRIPTION"}, &v1beta1.OperatorList{}
	if err := o.client.List(ctx, list, client.InNamespace(o.namespace)); err != nil {
		return found, fmt.Errorf("list operators: %w", err)
	}
	for k := range list.Items {
		i := &list.Items[k]
		i.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Operator"))
		found.objects = append(found.objects, i)
		found.rows = append(found.rows, i.Name+"\t"+i.Spec.Description)
	}
	return found, nil
}

func (o *operation) versions(ctx context.Context) (listed, error) {
	found, list := listed{title: "OPERATOR VERSION\tOPERATOR\tVERSION\tAPP VERSION"}, &v1beta1.OperatorVersionList{}
	if err := o.client.List(ctx, list, client.InNamespace(o.namespace)); err != nil {
		return found, fmt.Errorf("list operatorversions: %w", err)
	}
	for k := range list.Items {
		i := &list.Items[k]
		i.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("OperatorVersion"))
		found.objects = append(found.objects, i)
		found.rows = append(found.rows, fmt.Sprintf("%s\t%s\t%s\t%s", i.Name, i.Spec.Operator.Name, i.Spec.Version, i.Spec.AppVersion))
	}
	return found, nil
}
