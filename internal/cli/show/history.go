package show

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
)

// History is what the commands that tell of the past have in common.
type History struct {
	Env     command.Environment
	cluster command.Cluster
	output  string
	limit   int
	compare []string
}

// NewHistory returns the command history.
func NewHistory(env command.Environment) *cobra.Command {
	p := &History{Env: env}
	cmd := &cobra.Command{
		Use:   "history KIND/NAME",
		Short: "Show what was rolled when, by which change, by whom, and how long it took",
		Long: "Show the rollouts of an object, the newest first: when, by which change, by whom,\n" +
			"how long each of its parts took, and the Events of that time.\n" +
			"\n" +
			"Only what objects and Events record is shown. The author is the last field manager\n" +
			"that managedFields name for the changed fields. How long the parts took is known for\n" +
			"the zones of a group, the last run of each plan, and the newest rollout of a module.\n" +
			"A workload records only its last roll; how that went is known until its Pod template\n" +
			"changes. The API server keeps Events for an hour, unless --event-ttl says otherwise.\n" +
			"\n" +
			"For a workload that keeps its config, the revisions follow with the snapshots to which they\n" +
			"are pinned. For a ConfigMap or Secret, the contents that have a\n" +
			"snapshot are shown, and what refers to each.\n" +
			"\n" +
			"With --compare two of the rollouts stand side by side: by whom, what changed, how long\n" +
			"they and their parts took, and how they ended. Name each as it is shown, or by its last\n" +
			"word, its revision or its uid.\n" +
			"\n" +
			"The exit code is 1 if the object or a rollout is not found, and 0 if nothing was rolled.",
		Example: "  spillway history rolloutgroup/ingester -n mimir\n" +
			"  spillway history instance/zookeeper -n shop\n" +
			"  spillway history rolloutgroup/ingester -n mimir --compare 3,2\n" +
			"  spillway history module/shop -n clusters -o json\n" +
			"  spillway history secret/db -n shop",
		Args: command.Exactly(1, "name one as KIND/NAME, such as rolloutgroup/ingester"),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := p.cluster.ResolveNamespace()
			if err != nil {
				return err
			}
			ref, ok := command.NamedAs(args[0], describe.KindConfigMap, describe.KindSecret)
			if ref.Namespace = namespace; !ok {
				if ref, err = command.ObjectNamed(namespace, args[0]); err != nil {
					return err
				}
			}
			return p.run(cmd, ref)
		},
	}
	p.AddFlags(cmd)
	p.cluster.AddNamespacedFlags(cmd.Flags())
	return cmd
}

// AddFlags adds the flags of commands that show a history.
func (p *History) AddFlags(cmd *cobra.Command) {
	cmd.Flags().IntVar(&p.limit, "limit", display.ShownEpisodes, "how many rollouts to show, 0 for all that are known")
	cmd.Flags().StringSliceVar(&p.compare, "compare", nil, "two rollouts to show side by side, as A,B")
	command.OutputFlag(cmd, &p.output)
}

func (p *History) run(cmd *cobra.Command, ref describe.Ref) error {
	reader, err := p.cluster.Client()
	if err != nil {
		return err
	}
	return p.Print(cmd, reader, ref)
}

// Print prints the history of an object.
func (p *History) Print(cmd *cobra.Command, reader client.Reader, ref describe.Ref) error {
	switch {
	case p.limit < 0:
		return fmt.Errorf("--limit: %d is negative; use 0 for all", p.limit)
	case len(p.compare) != 0 && len(p.compare) != 2:
		return fmt.Errorf("--compare: %q are %d rollouts; name two, as A,B", p.compare, len(p.compare))
	}
	episodes, err := history.History(cmd.Context(), reader, ref)
	if err != nil {
		return better(cmd.Context(), reader, ref, err)
	}
	if p.compare != nil {
		compared, err := history.Compare(episodes, p.compare[0], p.compare[1])
		if err != nil {
			return fmt.Errorf("--compare: %w", err)
		}
		return command.Show(cmd.OutOrStdout(), p.output, compared, func(w io.Writer) { display.Comparison(w, &compared) })
	}
	if p.limit > 0 && len(episodes) > p.limit {
		episodes = episodes[:p.limit]
	}
	return command.Show(cmd.OutOrStdout(), p.output, slices.Concat([]history.Entry{}, episodes), func(w io.Writer) {
		display.History(w, display.StyleOf(w, p.Env.Lookup), ref, episodes, p.Env.Now())
	})
}

type telling struct {
	History

	all, watch bool
	rings      []string
	since      time.Duration
	// ref is the object that was named, members is what it consists of.
	ref       describe.Ref
	members   *history.Members
	selection command.Selection
	// labeled is true of the objects with the labels that were asked for.
	labeled func(describe.Ref) bool
}

// The fields that Events can be selected and sorted by. Those of what an Event is about have
// two names: that of this API, and that which kubectl get events knows.
var (
	eventSelectable = []string{"regarding.name", "regarding.kind", "regarding.namespace", "involvedObject.name", "involvedObject.kind", "involvedObject.namespace", "reason", "type"}
	eventSortable   = []string{"at", "name", "namespace", "kind", "reason"}
)

var eventFields = map[string]func(n *history.Event) string{
	"at": func(n *history.Event) string { return command.Sortable(&n.At) }, "reason": func(n *history.Event) string { return n.Reason },
	"name": func(n *history.Event) string { return n.About.Name }, "namespace": func(n *history.Event) string { return n.About.Namespace },
	"kind": func(n *history.Event) string { return n.About.Kind },
}

func fieldsOf(n *history.Event) fields.Set {
	kind := corev1.EventTypeNormal
	if n.Warning {
		kind = corev1.EventTypeWarning
	}
	set := fields.Set{"reason": n.Reason, "type": kind}
	for _, about := range []string{"regarding.", "involvedObject."} {
		set[about+"name"], set[about+"kind"], set[about+"namespace"] = n.About.Name, n.About.Kind, n.About.Namespace
	}
	return set
}

// NewEvents returns the command events.
func NewEvents(env command.Environment) *cobra.Command {
	t := &telling{History: History{Env: env}}
	cmd := &cobra.Command{
		Use:   "events [KIND/NAME]",
		Short: "List the Events of Spillway and its commands, the oldest first",
		Long: "List the Events that the manager and the commands of Spillway have written, the\n" +
			"oldest first. Name an object to list only its Events and those of its parts, such as\n" +
			"the StatefulSets of a group. Times are in UTC. The API server keeps Events for an\n" +
			"hour, unless --event-ttl says otherwise.\n" +
			"\n" +
			"With --watch the command continues until it is interrupted. Its exit code is then 0.",
		Example: "  spillway events -n shop\n  spillway events rolloutgroup/ingester -n mimir --since 15m\n  spillway events -A --rings fleet --watch\n  spillway events -A --field-selector type=Warning --sort-by name",
		Args:    command.AtMost(1, "name one as KIND/NAME, or leave it out"),
		RunE:    t.run,
	}
	t.cluster.AddNamespacedFlags(cmd.Flags())
	cmd.Flags().BoolVarP(&t.all, "all-namespaces", "A", false, "list the Events of all namespaces")
	command.ShownRingsFlag(cmd.Flags(), &t.rings)
	cmd.Flags().DurationVar(&t.since, "since", 0, "only Events that are not older, such as 15m (default: all)")
	cmd.Flags().BoolVarP(&t.watch, "watch", "w", false, "continue with new Events until interrupted")
	t.selection.AddFlags(cmd.Flags(), eventSelectable, eventSortable)
	command.OutputFlag(cmd, &t.output, command.OutputName)
	return cmd
}

func (t *telling) run(cmd *cobra.Command, args []string) error {
	if err := errors.Join(command.CheckShownRings(cmd.Flags(), t.rings), t.selection.Check()); err != nil {
		return err
	}
	namespace, err := t.namespace(args)
	if err != nil {
		return err
	}
	c, err := t.cluster.Client()
	if err != nil {
		return err
	}
	if namespace != "" {
		if err := command.NamespaceMissing(cmd.Context(), c, namespace); err != nil {
			return err
		}
	}
	if err := t.narrow(cmd.Context(), c, namespace, args); err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	if err := t.missing(cmd.Context(), c, namespace); err != nil {
		return err
	}
	if t.watch {
		return t.follow(cmd.Context(), c, namespace, w, cmd.ErrOrStderr())
	}
	notes, err := history.Events(cmd.Context(), c, namespace)
	if err != nil {
		return err
	}
	if err := t.look(cmd.Context(), c, namespace, notes); err != nil {
		return err
	}
	notes = slices.DeleteFunc(slices.Concat([]history.Event{}, notes), func(n history.Event) bool { return !t.wants(&n) || !t.labeled(n.About) })
	known := snapshot.New(c, c.Scheme(), namespace)
	for i := range notes {
		notes[i].AddChanged(cmd.Context(), known)
	}
	command.SortBy(&t.selection, notes, eventFields)
	if t.output == command.OutputName {
		writeAbout(w, notes)
		return nil
	}
	return command.Show(w, t.output, notes, func(w io.Writer) { t.write(w, notes) })
}

// look finds out which of the objects of some Events have the labels that were asked for.
func (t *telling) look(ctx context.Context, c client.Reader, namespace string, notes []history.Event) (err error) {
	refs := make([]describe.Ref, len(notes))
	for i := range notes {
		refs[i] = notes[i].About
	}
	t.labeled, err = t.selection.Labeled(ctx, c, namespace, refs)
	return err
}

// writeAbout writes the objects that Events are about, each once.
func writeAbout(w io.Writer, notes []history.Event) {
	told := map[describe.Ref]bool{}
	for i := range notes {
		if about := notes[i].About; !told[about] {
			told[about] = true
			_, _ = fmt.Fprintln(w, about)
		}
	}
}

// narrow finds out what the object consists of that was named, if one was.
func (t *telling) narrow(ctx context.Context, reader client.Reader, namespace string, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if t.all {
		return errors.New("--all-namespaces: an object is in one namespace; name it with -n")
	}
	ref, err := describe.Named(t.cluster.RESTMapper, namespace, args[0])
	if err != nil {
		return err
	}
	t.ref = ref
	t.members, err = history.MembersOf(ctx, reader, ref)
	return err
}

// missing is an error if the object that was named does not exist, and no Event is about it.
// Events outlive their object. What may not be read may exist.
func (t *telling) missing(ctx context.Context, c client.Reader, namespace string) error {
	missing := command.Missing(ctx, c, t.ref)
	if missing == nil {
		return nil
	}
	notes, err := history.Events(ctx, c, namespace)
	if err != nil || slices.ContainsFunc(notes, func(n history.Event) bool { return t.members.Has(&n) }) {
		return err
	}
	return missing
}

func (t *telling) write(w io.Writer, notes []history.Event) {
	if len(notes) == 0 {
		_, _ = fmt.Fprintln(w, "No Events found; the API server keeps Events for an hour, unless --event-ttl says otherwise.")
		return
	}
	s := display.StyleOf(w, t.Env.Lookup)
	f := display.NewFacts(w, s)
	for i := range notes {
		f.Line(t.columns(s, &notes[i])...)
	}
	f.Write()
}

// follow writes each Event as it is written: a line, or a document.
func (t *telling) follow(ctx context.Context, c client.WithWatch, namespace string, w, errs io.Writer) error {
	s := display.StyleOf(w, t.Env.Lookup)
	began, known := t.Env.Now(), snapshot.New(c, c.Scheme(), namespace)
	err := history.Follow(ctx, c, namespace, func(n *history.Event) error {
		if !t.wants(n) {
			return nil
		}
		if n.At.Before(began) { // of these there may be many
			n.AddChanged(ctx, known)
		} else {
			n.AddChanged(ctx, c)
		}
		if err := t.look(ctx, c, namespace, []history.Event{*n}); err != nil || !t.labeled(n.About) {
			return err
		}
		if t.output == command.OutputName {
			writeAbout(w, []history.Event{*n})
			return nil
		}
		return command.ShowNext(w, t.output, n, func(w io.Writer) {
			_, _ = fmt.Fprintln(w, strings.Join(t.columns(s, n), display.Gap))
		})
	}, func(err error) {
		_, _ = fmt.Fprintf(errs, "note: cannot list Events, retrying: %s\n", display.Plain(err.Error()))
	})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // that is how it ends
	}
	return err
}

func (t *telling) namespace(args []string) (string, error) {
	isCluster := false
	if len(args) > 0 {
		_, isCluster = command.NamedAs(args[0], describe.KindClusterPolicy)
	}
	switch {
	case t.watch && t.selection.Sorts():
		return "", errors.New("--sort-by: with --watch, Events come in the order in which they are written; leave one out")
	case t.since < 0:
		return "", fmt.Errorf("--since: %s is negative; say how old they may be, such as 15m", t.since)
	case t.all && t.cluster.Namespace != "":
		return "", command.ErrBothNamespaces
	case t.all:
		return "", nil
	case isCluster: // Events about what is in no namespace are in that one
		return metav1.NamespaceDefault, nil
	default:
		return t.cluster.ResolveNamespace()
	}
}

// wants is true of what was asked for, but for the labels of the objects.
func (t *telling) wants(n *history.Event) bool {
	recent := t.since == 0 || !n.At.Before(t.Env.Now().Add(-t.since))
	return recent && (len(t.rings) == 0 || slices.Contains(t.rings, n.Ring)) && (t.members == nil || t.members.Has(n)) &&
		t.selection.HasFields(fieldsOf(n))
}

func (t *telling) columns(s display.Style, n *history.Event) []string {
	columns := []string{n.At.UTC().Format(time.DateTime)}
	if t.all {
		columns = append(columns, n.About.Namespace)
	}
	text := display.EventText(n)
	if n.Times > 1 {
		text += fmt.Sprintf(" (%d times)", n.Times)
	}
	reason := s.Paint(display.Green, n.Reason) // both as long, so that columns stay columns
	if n.Warning {
		reason = s.Paint(display.Red, n.Reason)
	}
	return append(columns, n.About.String(), reason, text)
}
