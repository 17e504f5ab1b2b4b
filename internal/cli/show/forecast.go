package show

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/forecast"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

type forecaster struct {
	*command.Query

	all   bool
	ready time.Duration
	ifs   []string
}

// NewForecast returns the command forecast.
func NewForecast(env command.Environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "forecast [KIND/NAME]",
		Short: "Show which steps remain of the rollouts that are under way, and when they end",
		Long: "Show which steps remain of the rollouts that are under way, in their order, and when\n" +
			"they end. The code of the manager runs on the present state, which is read from the\n" +
			"cluster; nothing is written. Pods take as long as the present ones took, and what\n" +
			"stands in parentheses is the earliest and the latest time by that.\n" +
			"\n" +
			"With --if the same is shown for the case that something happens: approve=GATE,\n" +
			"pause=ZONE or pause=KIND/NAME, never-ready=POD or never-ready=KIND/NAME, lost=CLUSTER.\n" +
			"Several of them happen together.\n" +
			"\n" +
			"The exit code is 1 if a rollout that is shown does not complete.",
		Example: "  spillway forecast -n mimir\n" +
			"  spillway forecast rolloutgroup/ingester -n mimir --if pause=ingester-zone-b\n" +
			"  spillway forecast module/shop -n clusters --if lost=eu-3 -o json",
		Args: command.AtMost(1, "name one object, such as rolloutgroup/ingester, or none for all"),
	}
	f := &forecaster{Query: command.NewQuery(env, cmd)}
	flags := cmd.Flags()
	flags.BoolVarP(&f.all, "all-namespaces", "A", false, "all namespaces")
	flags.DurationVar(&f.ready, "ready", world.DefaultReady, "how long a Pod takes until it is ready, where none of its workload was seen to become ready")
	flags.StringArrayVar(&f.ifs, "if", nil, "what may happen: "+strings.Join(forecast.Suppositions(), "=NAME, ")+"=NAME; repeat it for several")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) }
	return cmd
}

func (f *forecaster) run(cmd *cobra.Command, args []string) error {
	suppositions, err := f.suppositions()
	if err != nil {
		return err
	}
	namespace, err := f.Cluster.ResolveNamespace()
	if err != nil {
		return err
	}
	object, ref := "", describe.Ref{}
	if len(args) == 1 {
		if ref, err = command.ObjectNamed(namespace, args[0]); err != nil {
			return err
		}
		object = record.Reference(ref.Kind, ref.Name)
	}
	command.SpendMemory()
	options, err := f.look(cmd.Context(), namespace)
	if err != nil {
		return err
	}
	if err := f.nowhere(cmd.Context(), options.Present, namespace); err != nil {
		return err
	}
	answer, err := ask(cmd.Context(), options, object, suppositions)
	if err != nil {
		return err
	}
	f.TellNoManager(cmd.Context(), len(answer.Rollouts) > 0)
	if object != "" && len(answer.Rollouts) == 0 {
		if err := f.missing(cmd.Context(), options.Present, &ref); err != nil {
			return err
		}
	}
	if err := command.Show(cmd.OutOrStdout(), f.Output, answer, func(w io.Writer) { f.write(w, &answer, object) }); err != nil {
		return err
	}
	return unended(&answer)
}

func ask(ctx context.Context, o simulate.Options, object string, suppositions []forecast.Supposition) (forecast.Answer, error) {
	answer, err := forecast.Compare(ctx, o, object, suppositions)
	if errors.Is(err, forecast.ErrNotSupposed) {
		err = fmt.Errorf("--if: %w", err)
	}
	return answer, err
}

// nowhere is an error if a namespace does not exist, and so has nothing.
func (f *forecaster) nowhere(ctx context.Context, present []client.Object, namespace string) error {
	if f.all || slices.ContainsFunc(present, func(o client.Object) bool { return o.GetNamespace() == namespace }) {
		return nil
	}
	c, err := f.Cluster.Client()
	if err != nil {
		return err
	}
	return command.NamespaceMissing(ctx, c, namespace)
}

// missing is an error if an object does not exist. A group exists where StatefulSets name it.
func (f *forecaster) missing(ctx context.Context, present []client.Object, ref *describe.Ref) error {
	isMember := func(o client.Object) bool {
		return o.GetNamespace() == ref.Namespace && vocabulary.GroupOf(o.GetLabels(), o.GetAnnotations()) == ref.Name
	}
	if ref.Kind == describe.KindGroup && slices.ContainsFunc(present, isMember) {
		return nil
	}
	c, err := f.Cluster.Client()
	if err != nil {
		return err
	}
	return command.Missing(ctx, c, *ref)
}

func (f *forecaster) suppositions() ([]forecast.Supposition, error) {
	all := make([]forecast.Supposition, 0, len(f.ifs))
	for _, text := range f.ifs {
		s, err := forecast.ParseSupposition(text)
		if err != nil {
			return nil, fmt.Errorf("--if: %w", err)
		}
		all = append(all, s)
	}
	if f.ready < 0 {
		return nil, fmt.Errorf("--ready: %s is negative; use a time such as 30s", f.ready)
	}
	if f.all && f.Cluster.Namespace != "" {
		return nil, command.ErrBothNamespaces
	}
	return all, nil
}

func (f *forecaster) look(ctx context.Context, namespace string) (simulate.Options, error) {
	reader, rules, err := f.Connect(ctx, namespace)
	if err != nil {
		return simulate.Options{}, err
	}
	if f.all {
		namespace = ""
	}
	return Present(ctx, f.Query, reader, rules, namespace, f.ready)
}

// Present is the state of a namespace of a cluster, of all if it is empty.
func Present(ctx context.Context, q *command.Query, reader client.Client, rules config.Options, namespace string, ready time.Duration) (simulate.Options, error) {
	version, err := q.Cluster.ServerVersion()
	if err != nil {
		return simulate.Options{}, err
	}
	objects, err := simulate.Present(ctx, reader, namespace)
	return simulate.Options{
		Now: q.Env.Now(), Namespace: namespace, Installed: reader.RESTMapper(), Config: rules, Nodes: 1, Version: version, Present: objects,
		Readiness: world.Readiness{Default: ready, Of: map[string]time.Duration{}},
	}, err
}

// Ends sets when units are expected to be complete.
func Ends(ctx context.Context, q *command.Query, reader client.Client, rules config.Options, namespace string, units []describe.Unit) error {
	o, err := Present(ctx, q, reader, rules, namespace, world.DefaultReady)
	if err != nil {
		return err
	}
	outlook, err := forecast.Of(ctx, o)
	if err != nil {
		return err
	}
	setEnds(units, outlook.Rollouts)
	return nil
}

func setEnds(units []describe.Unit, rollouts []forecast.Course) {
	for i := range units {
		u := &units[i]
		if u.Cause {
			u.Units = slices.Clone(u.Units) // a description may be remembered as it was
			setEnds(u.Units, rollouts)
			continue
		}
		at := slices.IndexFunc(rollouts, func(c forecast.Course) bool {
			return c.Ring == u.Ring && c.Namespace == u.Namespace && c.Object == record.Reference(u.Kind, u.Name)
		})
		if at >= 0 && !u.IsComplete() {
			u.Ends = rollouts[at].Ends // also if it does not end
		}
	}
}

func unended(a *forecast.Answer) error {
	courses := a.Rollouts
	if a.If != nil {
		courses = a.If.Rollouts
	}
	for i := range courses {
		if c := &courses[i]; c.Waits != nil {
			return fmt.Errorf("%s does not complete; see above", c.Object)
		}
	}
	return nil
}

func (f *forecaster) write(w io.Writer, a *forecast.Answer, object string) {
	if len(a.Rollouts) == 0 && (a.If == nil || len(a.If.Rollouts) == 0) {
		if object != "" {
			_, _ = fmt.Fprintf(w, "%s: no rollout is under way\n", object)
			return
		}
		_, _ = fmt.Fprintln(w, "no rollout is under way")
		return
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if a.If != nil {
		_, _ = fmt.Fprintf(columns, "\tas it is\tif %s\n", strings.Join(a.If.Suppositions, " and "))
	}
	pairs := a.Pairs()
	for _, p := range pairs {
		writeSteps(columns, p, a, f.all)
	}
	writeAllEnd(columns, a)
	_ = columns.Flush() // as with what is written to the terminal otherwise
	for _, p := range pairs {
		writeWaits(w, p, a)
	}
}

// writeAllEnd writes when the last of several rollouts ends.
func writeAllEnd(w io.Writer, a *forecast.Answer) {
	if len(a.Rollouts) < 2 { //nolint:mnd // one has said so itself
		return
	}
	line := "all of this ends\t" + endText(&forecast.Course{Ends: forecast.AllEnd(a.Rollouts)}, a.At)
	if a.If != nil {
		line += "\t" + endText(&forecast.Course{Ends: forecast.AllEnd(a.If.Rollouts)}, a.At)
	}
	_, _ = fmt.Fprintln(w, line)
}

func writeSteps(w io.Writer, p forecast.Pair, a *forecast.Answer, placed bool) {
	name := p.Any().Object
	if placed {
		name = p.Any().Namespace + " " + name
	}
	line := name + " ends\t" + endText(p.Plain, a.At)
	if a.If != nil {
		line += "\t" + endText(p.Other, a.At)
	}
	_, _ = fmt.Fprintln(w, line)
	for i, row := range p.Rows() {
		line := fmt.Sprintf("%4d. %s\t%s", i+1, row.Text, whenText(row.Plain, a.At))
		if a.If != nil {
			line += "\t" + whenText(row.Other, a.At)
		}
		_, _ = fmt.Fprintln(w, line)
	}
}

func endText(c *forecast.Course, now time.Time) string {
	switch {
	case c == nil:
		return "-"
	case c.Ends == nil:
		return "it waits"
	default:
		return describe.In(now, *c.Ends)
	}
}

// whenText is when a step begins, a dash if it is not taken.
func whenText(when *describe.Range, now time.Time) string {
	if when == nil {
		return "-"
	}
	return describe.In(now, *when)
}

// waits says why a rollout does not end. The sentence of a workload names it already.
func waits(c *forecast.Course) string {
	if c.Ring == describe.Config {
		return c.Waits.Sentence
	}
	return c.Object + ": " + c.Waits.Sentence
}

// writeWaits says why a rollout does not end, and which unit decides when it does.
func writeWaits(w io.Writer, p forecast.Pair, a *forecast.Answer) {
	say := func(c *forecast.Course, as string) {
		switch {
		case c == nil:
		case c.Waits != nil:
			_, _ = fmt.Fprintln(w, as+waits(c))
		case c.Decides != "":
			_, _ = fmt.Fprintf(w, "%s%s decides when %s ends\n", as, c.Decides[strings.LastIndex(c.Decides, "/")+1:], c.Object)
		}
	}
	say(p.Plain, "")
	if a.If != nil {
		say(p.Other, "if "+strings.Join(a.If.Suppositions, " and ")+": ")
	}
}
