package show

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones"
)

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

// outputWide is the form for people in which everything is shown.
const outputWide = "wide"

type overview struct {
	*command.Query

	all, waiting, eta bool
	show              []string
	selection         command.UnitSelection
}

// NewStatus returns the command status.
func NewStatus(env command.Environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the state of all rollouts, and what they wait for",
		Long: "Show the state of everything that the rings roll out: the workloads beneath the\n" +
			"config that changed, the groups of StatefulSets with their zones and Pods, the\n" +
			"Instances with their plans and steps, the modules with their stages and clusters.\n" +
			"A unit that is complete takes one line, and many of them share one; -o wide shows all.",
		Example: "  spillway status -A\n  spillway status -n mimir --rings zones\n  spillway status -A --waiting -o name",
		Args:    noNamespace,
	}
	s := &overview{Query: command.NewQuery(env, cmd, outputWide, command.OutputName)}
	flags := cmd.Flags()
	flags.BoolVarP(&s.all, "all-namespaces", "A", false, "all namespaces")
	flags.BoolVar(&s.waiting, "waiting", false, "only what waits, and what it is part of")
	flags.BoolVar(&s.eta, "eta", false, "when the rollouts that are under way end, as spillway forecast says")
	s.selection.AddFlags(flags)
	command.ShownRingsFlag(flags, &s.show)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return s.run(cmd) }
	return cmd
}

// noNamespace says how a namespace is named, which is all that a person can mean.
func noNamespace(cmd *cobra.Command, args []string) error {
	if _, isObject := command.NamedAs(strings.Join(args, "/"), command.RolledKinds...); len(args) == 2 && isObject { // as for kubectl
		args = []string{strings.Join(args, "/")}
	}
	if len(args) > 0 && strings.Contains(args[0], "/") {
		in := ""
		if namespace := cmd.Flags().Lookup("namespace"); namespace != nil && namespace.Changed {
			in = " -n " + namespace.Value.String()
		}
		return fmt.Errorf("%q: status shows namespaces; name one with -n, or use spillway explain %s%s", args[0], args[0], in)
	}
	if len(args) > 0 {
		return fmt.Errorf("%q: name a namespace with -n %s, or an object with spillway explain KIND/NAME", args[0], args[0])
	}
	return nil
}

func (s *overview) run(cmd *cobra.Command) error {
	if err := errors.Join(command.CheckShownRings(cmd.Flags(), s.show), s.check()); err != nil {
		return err
	}
	namespace, err := s.Cluster.ResolveNamespace()
	if err != nil {
		return err
	}
	c, rules, err := s.Connect(cmd.Context(), namespace)
	if err != nil {
		return err
	}
	if s.all {
		namespace = ""
	}
	snapshot, err := describe.Describe(cmd.Context(), c, describe.Options{Config: rules, Namespace: namespace, Rings: s.show})
	if err != nil {
		return err
	}
	if len(snapshot.Units) == 0 && !s.all {
		if err := command.NamespaceMissing(cmd.Context(), c, namespace); err != nil {
			return err
		}
	}
	snapshot.NoManager = s.TellNoManager(cmd.Context(), !describe.AreComplete(snapshot.Units))
	for _, unseen := range snapshot.Unseen {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "note: %s is not shown: %s\n", unseen.Ring, unseen.Why)
	}
	if err := s.foresee(cmd.Context(), c, rules, namespace, snapshot.Units); err != nil {
		return err
	}
	if snapshot.Units, err = s.selection.Apply(cmd.Context(), c, namespace, snapshot.Units); err != nil {
		return err
	}
	return s.print(cmd.OutOrStdout(), snapshot, namespace)
}

func (s *overview) foresee(ctx context.Context, reader client.Client, rules config.Options, namespace string, units []describe.Unit) error {
	if !s.eta {
		return nil
	}
	if err := Ends(ctx, s.Query, reader, rules, namespace, units); err != nil {
		return fmt.Errorf("--eta: %w", err)
	}
	return nil
}

func (s *overview) check() error {
	if err := s.selection.Check(); err != nil {
		return err
	}
	if s.all && s.Cluster.Namespace != "" {
		return command.ErrBothNamespaces
	}
	return nil
}

func (s *overview) print(w io.Writer, snapshot describe.Description, namespace string) error {
	units, shown := snapshot.Units, snapshot.Units
	if s.waiting {
		shown = describe.Waiting(units)
	}
	switch s.Output {
	case command.OutputName:
		writeNames(w, shown)
	case "", outputWide:
		t := display.Tree{Now: s.Env.Now(), Style: display.StyleOf(w, s.Env.Lookup), Whole: s.Output == outputWide, Namespaces: s.all}
		if !s.write(w, &t, units, shown) {
			_, _ = fmt.Fprintln(w, s.nothing(&snapshot, namespace))
		}
	default:
		snapshot.Units = append([]describe.Unit{}, shown...)
		return command.Show(w, s.Output, snapshot, nil)
	}
	return nil
}

// write writes ring by ring: a line that counts, and the tree. It is false if there is
// nothing to write.
func (s *overview) write(w io.Writer, t *display.Tree, units, shown []describe.Unit) bool {
	first := true
	for _, ring := range describe.Rings() {
		all, some := describe.OfRing(units, ring), describe.OfRing(shown, ring)
		if len(some) == 0 {
			continue
		}
		if !first {
			_, _ = fmt.Fprintln(w)
		}
		first = false
		_, _ = fmt.Fprintf(w, "%s: %s\n", t.Style.Paint(display.Bold, ring), describe.Counts(describe.Rolled(all)))
		for _, line := range t.Lines(some) {
			_, _ = fmt.Fprintln(w, line)
		}
	}
	return !first
}

// nothing says what there is none of, of what was asked for and seen.
func (s *overview) nothing(snapshot *describe.Description, namespace string) string {
	switch {
	case len(snapshot.Units) > 0 && len(snapshot.Unseen) > 0:
		return "Nothing waits of what you may read."
	case len(snapshot.Units) > 0:
		return "Nothing waits."
	}
	var none []string
	for _, ring := range describe.Rings() {
		isUnseen := slices.ContainsFunc(snapshot.Unseen, func(u describe.Forbidden) bool { return u.Ring == ring })
		if !isUnseen && (len(s.show) == 0 || slices.Contains(s.show, ring)) {
			none = append(none, "no "+rolledBy[ring])
		}
	}
	last := len(none) - 1
	text := strings.Join(none[:last], ", ")
	if last > 0 {
		text += " and "
	}
	switch text += none[last]; {
	case s.selection.Narrows():
		return "No rollouts found with these labels and fields" + in(namespace) + "."
	case namespace != "":
		return "No rollouts found" + in(namespace) + ": " + text + ". For all namespaces: spillway status -A"
	case len(none) > 1 && none[0] == "no "+rolledBy[describe.Config]:
		return "No rollouts found: " + text + ". To roll a workload when its config changes, annotate it with " + vocabulary.ConfigTracked.Native + `: "true"`
	default:
		return "No rollouts found: " + text + "."
	}
}

func in(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
}

var rolledBy = map[string]string{
	describe.Config: "tracked workload", describe.Zones: "group of StatefulSets", describe.Plans: "Instance", describe.Fleet: "module",
}

func writeNames(w io.Writer, units []describe.Unit) {
	units = describe.Rolled(units)
	for i := range units {
		_, _ = fmt.Fprintln(w, units[i].String())
	}
}
