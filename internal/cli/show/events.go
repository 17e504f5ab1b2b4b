package show

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
)

// telling is which Events are wanted.
type telling struct {
	History

	all, watch bool
	rings      []string
	since      time.Duration
	members    *history.Members
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
		Example: "  spillway events -n shop\n  spillway events rolloutgroup/ingester -n mimir --since 15m\n  spillway events -A --rings fleet --watch",
		Args: func(cmd *cobra.Command, args []string) error {
			return command.AtMost(1, "name one as KIND/NAME, or leave it out")(cmd.CommandPath(), args)
		},
		RunE: t.run,
	}
	t.cluster.AddFlags(cmd.Flags())
	t.cluster.AddNamespaceFlag(cmd.Flags())
	cmd.Flags().BoolVarP(&t.all, "all-namespaces", "A", false, "list the Events of all namespaces")
	cmd.Flags().StringSliceVar(&t.rings, "rings", nil, "only Events of these rings: "+strings.Join(describe.Rings(), ", "))
	cmd.Flags().DurationVar(&t.since, "since", 0, "only Events that are not older, such as 15m (default: all)")
	cmd.Flags().BoolVarP(&t.watch, "watch", "w", false, "continue with new Events until interrupted")
	command.OutputFlag(cmd, &t.output)
	return cmd
}

func (t *telling) run(cmd *cobra.Command, args []string) error {
	namespace, err := t.namespace()
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
	if t.watch {
		return t.follow(cmd.Context(), c, namespace, w, cmd.ErrOrStderr())
	}
	notes, err := history.Events(cmd.Context(), c, namespace)
	if err != nil {
		return err
	}
	notes = slices.DeleteFunc(slices.Concat([]history.Event{}, notes), func(n history.Event) bool { return !t.wants(&n) })
	return command.Show(w, t.output, notes, func(w io.Writer) { t.write(w, notes) })
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
	t.members, err = history.MembersOf(ctx, reader, ref)
	return err
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

// follow writes a line for each Event as it is written.
func (t *telling) follow(ctx context.Context, c client.WithWatch, namespace string, w, errs io.Writer) error {
	s, told := display.StyleOf(w, t.Env.Lookup), json.NewEncoder(w)
	told.SetEscapeHTML(false)
	err := history.Follow(ctx, c, namespace, func(n *history.Event) error {
		switch {
		case !t.wants(n):
			return nil
		case t.output == "json":
			return told.Encode(n)
		default:
			_, err := fmt.Fprintln(w, strings.Join(t.columns(s, n), display.Gap))
			return err //nolint:wrapcheck // nothing can be added to a broken pipe
		}
	}, func(err error) {
		_, _ = fmt.Fprintf(errs, "note: cannot list Events, retrying: %s\n", display.Plain(err.Error()))
	})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // that is how it ends
	}
	return err
}

func (t *telling) namespace() (string, error) {
	if err := errors.Join(checkRings(t.rings), command.CheckOutput(t.output)); err != nil {
		return "", err
	}
	switch {
	case t.watch && t.output != "" && t.output != command.OutputJSON:
		return "", fmt.Errorf("--output: %q is not possible with --watch; use json, or leave it out", t.output)
	case t.since < 0:
		return "", fmt.Errorf("--since: %s is negative; say how old they may be, such as 15m", t.since)
	case t.output != "" && t.output != "json":
		return "", command.Show(io.Discard, t.output, nil, nil)
	case t.all && t.cluster.Namespace != "":
		return "", command.ErrBothNamespaces
	case t.all:
		return "", nil
	default:
		return t.cluster.ResolveNamespace()
	}
}

// wants is true of what was asked for.
func (t *telling) wants(n *history.Event) bool {
	recent := t.since == 0 || !n.At.Before(t.Env.Now().Add(-t.since))
	return recent && (len(t.rings) == 0 || slices.Contains(t.rings, n.Ring)) && (t.members == nil || t.members.Has(n))
}

// columns are what there is to say of an Event.
func (t *telling) columns(s display.Style, n *history.Event) []string {
	columns := []string{n.At.UTC().Format(time.DateTime)}
	if t.all {
		columns = append(columns, n.About.Namespace)
	}
	text := display.Plain(n.Text)
	if n.Times > 1 {
		text += fmt.Sprintf(" (%d times)", n.Times)
	}
	reason := s.Paint(display.Green, n.Reason) // both as long, so that columns stay columns
	if n.Warning {
		reason = s.Paint(display.Red, n.Reason)
	}
	return append(columns, n.About.String(), reason, text)
}
