package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
)

// shownEpisodes is how many rollouts history shows unless it is told otherwise, and
// shownStretches how many clusters of one; all are in the JSON.
const (
	shownEpisodes  = 10
	shownStretches = 20
)

// past is what the commands that tell of the past have in common.
type past struct {
	env     Environment
	cluster cluster
	output  string
	limit   int
}

func newHistory(env Environment) *cobra.Command {
	p := &past{env: env}
	cmd := &cobra.Command{
		Use:   "history KIND/NAME",
		Short: "Say what was rolled when, by which change, by whom, and how long it took",
		Long: `Say what was rolled of an object, the newest first: when, by which change, by whom,
how long each of its parts took, and what was told meanwhile.

It says what is known for certain. A field manager is the one that managedFields
name as the last that wrote there; how long the parts took is known of the zones
of a group, of the last run of each plan, and of the newest rollout of a module; and
the API server keeps Events for an hour, unless it is told otherwise. A workload
remembers only its last roll, and how that went is known until somebody changes its
Pod template.

The exit code is 1 if the object is not there, and 0 if nothing was rolled.`,
		Example: "  spillway history rolloutgroup/ingester -n mimir\n" +
			"  spillway history instance/zookeeper -n shop\n" +
			"  spillway history module/shop -n clusters -o json",
		Args: exactly(1, "name one as KIND/NAME, such as rolloutgroup/ingester"),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := p.cluster.namespaced()
			if err != nil {
				return err
			}
			ref, err := objectNamed(namespace, args[0])
			if err != nil {
				return err
			}
			return p.run(cmd, ref)
		},
	}
	p.addFlags(cmd)
	p.cluster.addFlags(cmd.Flags())
	p.cluster.addNamespaceFlag(cmd.Flags())
	return cmd
}

func (p *past) addFlags(cmd *cobra.Command) {
	cmd.Flags().IntVar(&p.limit, "limit", shownEpisodes, "how many rollouts to show, 0 for all that are known")
	outputFlag(cmd, &p.output)
}

func (p *past) run(cmd *cobra.Command, ref describe.Ref) error {
	reader, err := p.cluster.reader()
	if err != nil {
		return err
	}
	return p.tell(cmd, reader, ref)
}

// tell prints the history of an object.
func (p *past) tell(cmd *cobra.Command, reader client.Reader, ref describe.Ref) error {
	episodes, err := history.History(cmd.Context(), reader, ref)
	if err != nil {
		return err
	}
	if p.limit > 0 && len(episodes) > p.limit {
		episodes = episodes[:p.limit]
	}
	return show(cmd.OutOrStdout(), p.output, slices.Concat([]history.Entry{}, episodes), func(w io.Writer) {
		writeHistory(w, styleOf(w, p.env.Lookup), ref, episodes, p.env.Now())
	})
}

// writeHistory writes a paragraph for each episode.
func writeHistory(w io.Writer, s style, ref describe.Ref, episodes []history.Entry, now time.Time) {
	if len(episodes) == 0 {
		_, _ = fmt.Fprintf(w, "Nothing was rolled of %s yet.\n", ref)
	}
	for i := range episodes {
		if i > 0 {
			_, _ = fmt.Fprintln(w)
		}
		writeEpisode(w, s, &episodes[i], now)
	}
}

// factColumn is where the facts of an episode begin.
const factColumn = 11

func writeEpisode(w io.Writer, s style, e *history.Entry, now time.Time) {
	title := s.paint(bold, e.What)
	if e.Outcome != "" {
		title += "  " + s.word(e.Outcome)
	}
	_, _ = fmt.Fprintln(w, title)
	for _, fact := range [][2]string{
		{"began", beganText(e, now)}, {"to", e.To}, {"change", e.Change}, {"by", e.By}, {"message", e.Message},
	} {
		if fact[1] != "" {
			_, _ = fmt.Fprintf(w, "  %-*s%s\n", factColumn-2, fact[0], s.fold(plain(fact[1]), factColumn))
		}
	}
	writeStretches(w, s, e, now)
	for i := range e.Notes {
		writeNote(w, s, &e.Notes[i], e)
	}
}

// beganText says when an episode began, and how long it took if that is known.
func beganText(e *history.Entry, now time.Time) string {
	switch {
	case e.Started == nil:
		return "never, as far as is known"
	case e.Ended != nil:
		return e.Started.UTC().Format(momentLayout) + ", took " + elapsed(*e.Started, e.Ended, now)
	case e.Outcome == "Running":
		return e.Started.UTC().Format(momentLayout) + ", " + elapsed(*e.Started, nil, now) + " ago"
	default:
		return e.Started.UTC().Format(momentLayout)
	}
}

// writeStretches writes how long the parts took, in columns.
func writeStretches(w io.Writer, s style, e *history.Entry, now time.Time) {
	f := newFacts(w, s)
	shown := min(len(e.Units), shownStretches)
	for i := range shown {
		u := &e.Units[i]
		addStretch(f, strings.ToLower(u.Kind), u, now)
		for j := range u.Units {
			addStretch(f, "  "+strings.ToLower(u.Units[j].Kind), &u.Units[j], now)
		}
	}
	f.write()
	if more := len(e.Units) - shown; more > 0 {
		_, _ = fmt.Fprintln(w, s.paint(faint, fmt.Sprintf("  and %d more, which -o json has", more)))
	}
}

func addStretch(f *facts, what string, u *history.Part, now time.Time) {
	took := ""
	switch {
	case u.Started == nil:
	case u.Ended != nil:
		took = elapsed(*u.Started, u.Ended, now)
	default:
		took = "since " + u.Started.UTC().Format(time.TimeOnly)
	}
	f.line(fmt.Sprintf("  %-*s%s", factColumn-2, what, u.Name), u.Outcome, took, u.Message)
}

// writeNote writes what was told, with its object where that is another one.
func writeNote(w io.Writer, s style, n *history.Event, of *history.Entry) {
	text := n.Text
	if n.About != of.Ref {
		text = n.About.String() + ": " + text
	}
	reason := n.Reason
	if n.Warning {
		reason = s.paint(red, reason)
	}
	at := n.At.UTC().Format(time.TimeOnly)
	indent := factColumn + len(n.Reason) + 2
	_, _ = fmt.Fprintf(w, "  %s %s  %s\n", s.paint(faint, at), reason, s.fold(plain(text), indent))
}
