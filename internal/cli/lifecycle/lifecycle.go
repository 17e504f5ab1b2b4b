package lifecycle

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
)

type operation struct {
	env     command.Environment
	cluster command.Cluster
	from    command.Packages
	settings

	output string
	dryRun command.DryRun
	// kubeVersion is that of the cluster that a dry run does not ask.
	kubeVersion command.KubeVersion
	wait, yes   bool
	// tried: the API server was asked about the objects of the plan.
	tried   bool
	timeout time.Duration

	in        io.Reader
	out       io.Writer
	client    client.WithWatch
	namespace string
}

// Commands returns the commands that change Instances of packages.
func Commands(env command.Environment) []*cobra.Command {
	return []*cobra.Command{newInstall(env), newUpdate(env), newUpgrade(env), newUninstall(env), newDiff(env), newPermissions(env), newGet(env), newDiagnostics(env)}
}

func (o *operation) addFlags(cmd *cobra.Command) {
	o.cluster.AddNamespacedFlags(cmd.Flags())
}

func (o *operation) addWait(cmd *cobra.Command, until string) {
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until "+until+"; the exit code is 1 if that fails")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "how long to wait; 0 is no limit")
}

func (o *operation) addDryRun(cmd *cobra.Command) {
	o.dryRun.AddFlagWith(cmd.Flags(), `"client" or "server": write nothing, and show what would be written and what the plan would apply; with "server" the API server checks all of it`)
	command.OutputFlag(cmd, &o.output, command.OutputName)
}

func (o *operation) connect(cmd *cobra.Command) (err error) {
	o.in, o.out = cmd.InOrStdin(), cmd.OutOrStdout()
	if err := o.check(); err != nil {
		return err
	}
	if o.client, o.namespace, err = o.cluster.Connect(); err == nil {
		go o.learnKinds()
	}
	return err
}

func (o *operation) connected(run func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := o.connect(cmd); err != nil {
			return err
		}
		return run(cmd.Context(), args)
	}
}

// learnKinds has the client ask which kinds the API server has, while packages are read. If
// that fails, the first request says why.
func (o *operation) learnKinds() {
	_, _ = o.client.RESTMapper().RESTMapping(v1beta1.GroupVersion.WithKind("Instance").GroupKind(), v1beta1.GroupVersion.Version)
}

func (o *operation) check() error {
	if o.wait && o.dryRun.On() {
		return errors.New("--wait: nothing happens in a dry run; leave out one of them")
	}
	return command.CheckWait(o.wait, o.timeout)
}

func (o *operation) instance(arg string) *v1beta1.Instance {
	return &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: command.InstanceName(arg)}}
}

func (o *operation) confirm(question string) error {
	if o.yes || o.dryRun.On() {
		return nil
	}
	_, _ = fmt.Fprintf(o.env.Err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(o.in).ReadString('\n')
	if err != nil && answer == "" {
		return errors.New("not confirmed, nothing was changed; add --yes where no person can answer")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	default:
		return errors.New("not confirmed, nothing was changed")
	}
}

func (o *operation) finish(ctx context.Context, r *results, i *v1beta1.Instance, version *choice.Version, plan string) error {
	if err := o.showPlan(ctx, r, i, version, plan); err != nil {
		return err
	}
	if o.wait {
		if err := o.planner(i).settled(ctx, i.Generation); err != nil {
			return err
		}
	}
	return r.end()
}

// planner waits for the plans of an Instance, and shows them unless a program reads what is printed.
func (o *operation) planner(i *v1beta1.Instance) *planner {
	return &planner{Person: act.Person{Env: o.env, Client: o.client, Output: o.output}, out: o.out, name: client.ObjectKeyFromObject(i), timeout: o.timeout}
}

// trial asks the API server what would become of objects, unless the user asks for a dry
// run without it.
func (o *operation) trial() trial {
	t := trial{Now: o.env.Now}
	if !o.dryRun.IsClient() {
		t.Client = o.client
	}
	return t
}

func (o *operation) next(words ...string) string {
	all := append([]string{"spillway"}, words...)
	all = append(all, "-n", o.namespace)
	return strings.Join(append(all, o.cluster.Words()...), " ")
}

// What became of an object.
const (
	created   = "created"
	unchanged = "unchanged"
	changed   = "changed"
	kept      = "kept as it is"
)

// results are what became of objects, in order. Text is written as it happens, other
// forms at the end.
type results struct {
	out    io.Writer
	output string
	// suffix says that it was a dry run.
	suffix string
	// kudo is true if text is as KUDO writes it.
	kudo bool
	all  []*unstructured.Unstructured
	// deleted are the full names of objects that the plan deletes.
	deleted map[string]bool
	// warned are the objects of which it was said that no API server accepts them.
	warned map[object.Ref]bool
}

func (o *operation) results() *results {
	return &results{out: o.out, output: o.output, suffix: o.dryRun.Note(), kudo: o.env.KUDO, deleted: map[string]bool{}, warned: map[object.Ref]bool{}}
}

func (r *results) add(obj client.Object, did string) error {
	u, err := kube.Manifest(obj)
	if err != nil {
		return err
	}
	u.SetManagedFields(nil)
	r.all = append(r.all, u)
	switch {
	case r.output == "" && r.kudo:
		_, _ = fmt.Fprintln(r.out, kudoResult(u, did))
	case r.output == "":
		_, _ = fmt.Fprintf(r.out, "%s %s%s\n", shortName(u), did, r.suffix)
	case r.output == command.OutputName:
		_, _ = fmt.Fprintln(r.out, fullName(u))
	}
	return nil
}

func kudoResult(u *unstructured.Unstructured, did string) string {
	if did == kept {
		did = unchanged
	}
	if did, _, _ = strings.Cut(did, ";"); did == changed {
		did = "updated"
	}
	name := u.GetName()
	if u.GetNamespace() != "" {
		name = u.GetNamespace() + "/" + name
	}
	return strings.ToLower(u.GetKind()) + " " + name + " " + did
}

// end writes what was recorded, in the forms that are written at the end.
func (r *results) end() error {
	switch r.output {
	case command.OutputYAML:
		for _, u := range r.all {
			raw, err := yaml.Marshal(u.Object)
			if err != nil {
				return fmt.Errorf("write YAML: %w", err)
			}
			_, _ = fmt.Fprintf(display.Raw(r.out), "---\n%s", raw)
		}
	case "", command.OutputName:
	default:
		items := make([]any, len(r.all))
		for i, u := range r.all {
			items[i] = u.Object
		}
		return command.Show(r.out, r.output, map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, nil)
	}
	return nil
}

func shortName(obj client.Object) string {
	return strings.ToLower(obj.GetObjectKind().GroupVersionKind().Kind) + "/" + obj.GetName()
}

func fullName(u *unstructured.Unstructured) string {
	kind := strings.ToLower(u.GetKind())
	if group := u.GroupVersionKind().Group; group != "" {
		kind += "." + group
	}
	return kind + "/" + u.GetName()
}

// addRendered records what would become of an object that a plan applies or deletes. The
// forms for machines have only those that it applies.
func (r *results) addRendered(u *unstructured.Unstructured, would string, applies bool) {
	if applies {
		r.all = append(r.all, u)
	} else {
		r.deleted[fullName(u)] = true
	}
	switch {
	case r.output == "":
		_, _ = fmt.Fprintf(r.out, "%s %s%s\n", shortName(u), would, r.suffix)
	case r.output == command.OutputName && applies:
		_, _ = fmt.Fprintln(r.out, fullName(u))
	}
}

// showPlan records, in a dry run, what a plan would apply and delete, and lets the API
// server check it.
func (o *operation) showPlan(ctx context.Context, r *results, i *v1beta1.Instance, version *choice.Version, plan string) error {
	if !o.dryRun.On() || plan == "" {
		return nil
	}
	t := o.trial()
	previews, err := t.render(i, version, plan, nil)
	if err != nil {
		return err
	}
	defined := definedBy(previews)
	var refusals []error
	for _, p := range previews {
		at := fmt.Sprintf("plan %s at %s/%s", plan, p.Path[0], p.Path[1])
		for _, u := range p.Objects {
			if p.Deletes {
				r.addRendered(u, "deleted by "+at, false)
				continue
			}
			r.addRendered(u, "applied by "+at, true)
			o.warnIfRetired(r, u)
			if o.tried {
				continue
			}
			if err := t.check(ctx, i, u, defined); err != nil {
				refusals = append(refusals, fmt.Errorf("%s: %s: %w", at, shortName(u), err))
			}
		}
	}
	return errors.Join(refusals...)
}

// warnIfRetired says, once, that no API server would accept an object, where none is asked.
func (o *operation) warnIfRetired(r *results, u *unstructured.Unstructured) {
	gvk := u.GroupVersionKind()
	if !o.dryRun.IsClient() || r.warned[object.RefOf(u)] || o.isServed(gvk) {
		return
	}
	r.warned[object.RefOf(u)] = true
	advice := object.RetiredAdvice(gvk)
	if to, _ := object.Successor(gvk); !to.Empty() {
		advice += ", or have it changed with: spillway package modernize DIR"
	}
	_, _ = fmt.Fprintf(o.env.Err, "warning: %s: %s\n", shortName(u), advice)
}

// isServed is false of a version of one of Kubernetes' own kinds that the cluster does not
// serve any more, or, if no cluster is known, that Kubernetes of the wanted version does not.
func (o *operation) isServed(gvk schema.GroupVersionKind) bool {
	if o.client == nil {
		return object.IsServedIn(gvk, o.kubeVersion.Minor)
	}
	_, isRetired := object.Successor(gvk)
	_, err := o.client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	return !isRetired || !apimeta.IsNoMatchError(err)
}

type settings struct {
	pairs, files, unset, sources []string
}

func (s *settings) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&s.pairs, "parameter", "p", nil, "a parameter as NAME=VALUE; may be given several times, and comes before files")
	cmd.Flags().StringArrayVar(&s.sources, "parameter-from", nil, "a parameter whose value stays in a Secret of the namespace, as NAME=SECRET/KEY; may be given several times")
	cmd.Flags().StringArrayVarP(&s.files, "parameter-file", "P", nil, "a file of parameters in YAML, also with lists and maps; may be given several times, the last one wins")
}

func (s *settings) addUnset(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.unset, "unset", nil, "the name of a parameter to set back to its default; may be given several times")
}

func (s *settings) given() (map[string]string, error) {
	values := map[string]string{}
	for _, file := range s.files {
		raw, err := os.ReadFile(file) //nolint:gosec // the user names what is read
		if err != nil {
			return nil, fmt.Errorf("--parameter-file: %w; name a file in YAML", err)
		}
		some, err := packages.Values(raw)
		if err != nil {
			return nil, fmt.Errorf("--parameter-file: %s: %w", file, err)
		}
		maps.Copy(values, some)
	}
	for _, pair := range s.pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--parameter: %q must be NAME=VALUE", pair)
		}
		values[name] = value
	}
	return values, nil
}

func (s *settings) set(spec *v1beta1.InstanceSpec) error {
	parameters, err := s.applied(spec.Parameters)
	if err != nil {
		return err
	}
	from := slices.DeleteFunc(slices.Clone(spec.ParametersFrom), func(p v1beta1.ParameterSource) bool { return slices.Contains(s.unset, p.Name) })
	for _, given := range s.sources {
		name, ref, isPair := strings.Cut(given, "=")
		secret, key, hasKey := strings.Cut(ref, "/")
		if !isPair || !hasKey || name == "" || secret == "" || key == "" {
			return fmt.Errorf("--parameter-from: %q must be NAME=SECRET/KEY", given)
		}
		from = slices.DeleteFunc(from, func(p v1beta1.ParameterSource) bool { return p.Name == name })
		from = append(from, v1beta1.ParameterSource{Name: name, SecretKeyRef: v1beta1.SecretKeyReference{Name: secret, Key: key}})
		delete(parameters, name)
	}
	if spec.ParametersFrom = from; len(parameters) > 0 || spec.Parameters != nil {
		spec.Parameters = parameters
	}
	return nil
}

// applied are parameters after a change: those that were set before, without those that
// are unset, and with those that are given.
func (s *settings) applied(before map[string]string) (map[string]string, error) {
	given, err := s.given()
	if err != nil {
		return nil, err
	}
	after := maps.Clone(before)
	if after == nil {
		after = map[string]string{}
	}
	for _, name := range s.unset {
		if _, both := given[name]; both {
			return nil, fmt.Errorf("--unset: parameter %s is set as well; leave out one of them", name)
		}
		delete(after, name)
	}
	maps.Copy(after, given)
	return after, nil
}

// lists are the kinds that can be listed, in the order in which all are.
func lists() []listed {
	return []listed{
		{"operators", "Operator", "OPERATOR\tDESCRIPTION", &v1beta1.OperatorList{}},
		{"operatorversions", "OperatorVersion", "OPERATOR VERSION\tOPERATOR\tVERSION\tAPP VERSION", &v1beta1.OperatorVersionList{}},
		{"instances", "Instance", "INSTANCE\tOPERATOR VERSION\tPLAN\tSTATUS", &v1beta1.InstanceList{}},
	}
}

type listed struct {
	name, kind, title string
	list              client.ObjectList
}

func newGet(env command.Environment) *cobra.Command {
	o := &operation{env: env}
	cmd := &cobra.Command{
		Use: "get instances|operators|operatorversions|all", Short: "List what is installed in a namespace",
		Example: "  spillway package get instances -n shop\n" +
			"  spillway package get all -n shop -o name",
		Args: command.Exactly(1, "name instances, operators, operatorversions or all"), ValidArgs: []string{"instances", "operators", "operatorversions", "all"},
		RunE: o.connected(o.list),
	}
	o.addFlags(cmd)
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "output format: json, yaml or name (default: text)")
	return cmd
}

func (o *operation) list(ctx context.Context, args []string) error {
	tables := lists()
	if args[0] != "all" {
		tables = slices.DeleteFunc(tables, func(l listed) bool { return l.name != strings.TrimSuffix(args[0], "s")+"s" })
	}
	if len(tables) == 0 {
		return fmt.Errorf("%q is not known; use instances, operators, operatorversions or all", args[0])
	}
	objects := 0
	for _, l := range tables {
		if err := o.client.List(ctx, l.list, client.InNamespace(o.namespace)); err != nil {
			return fmt.Errorf("list %s: %w", l.name, err)
		}
		objects += apimeta.LenList(l.list)
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
	r := o.results()
	for _, l := range tables {
		if err := l.each(func(obj client.Object) error { return r.add(obj, "") }); err != nil {
			return err
		}
	}
	return r.end()
}

func (l *listed) each(do func(client.Object) error) error {
	return apimeta.EachListItem(l.list, func(item runtime.Object) error { //nolint:wrapcheck // of what is done
		item.GetObjectKind().SetGroupVersionKind(v1beta1.GroupVersion.WithKind(l.kind)) // lists have none
		obj, _ := item.(client.Object)                                                  // all of them are
		return do(obj)
	})
}

// writeTables writes what is listed, or what to type if there is nothing.
func (o *operation) writeTables(tables []listed, objects int) {
	for i, l := range tables {
		if i > 0 {
			_, _ = fmt.Fprintln(o.out)
		}
		table := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, l.title)
		_ = l.each(func(obj client.Object) error {
			_, err := fmt.Fprintln(table, row(obj))
			return err //nolint:wrapcheck // as with what is written to the terminal otherwise
		})
		_ = table.Flush()
	}
	if objects == 0 {
		_, _ = fmt.Fprintf(o.env.Err, "note: nothing of that is in namespace %s; to install a package: %s\n", o.namespace, o.next("package", "install", "PACKAGE", "NAME"))
	}
}

func row(obj client.Object) string {
	switch o := obj.(type) {
	case *v1beta1.Instance:
		plan := ""
		if x := o.Status.Execution; x != nil {
			plan = x.Plan
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s", o.Name, o.Spec.OperatorVersion.Name, plan, o.Status.AggregatedStatus.Status)
	case *v1beta1.OperatorVersion:
		return fmt.Sprintf("%s\t%s\t%s\t%s", o.Name, o.Spec.Operator.Name, o.Spec.Version, o.Spec.AppVersion)
	case *v1beta1.Operator:
		return o.Name + "\t" + o.Spec.Description
	default:
		return obj.GetName()
	}
}
